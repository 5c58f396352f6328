import Testing

/// The proxy port: plain and TLS, IPv4 and IPv6, who may connect, and what it says of itself.
@Suite(.timeLimit(.minutes(5)))
struct ListenerTests {
    @Test func theProxyPortSpeaksTLSToo() async throws {
        try await withTestBed { bed in
            let front = try TestRoots("Front")
            let chain = try front.chain("proxy.test", "127.0.0.1")
            try bed.file("proxy/front.pem", chain.pem)
            try bed.file("proxy/front.key", chain.keyPEM)
            let shared = try await OriginBed.prepare(
                bed, sections: ["proxy": ["tls: {certificate: front.pem, private_key: front.key}"]])
            let options = [
                "--proxy", "https://127.0.0.1:\(shared.proxy.port)", "--proxy-cacert",
                try front.write(to: bed, name: "front-roots"),
            ]
            for url in [shared.url, shared.plainURL] {
                let run = try await bed.curl(via: shared.proxy, options + ["\(url)/echo"])
                #expect(run.output.contains("\"method\": \"GET\""), "\(run)")
            }
            // "also speak TLS": plain text is still understood.
            let plain = try await shared.curl(shared.url + "/echo")
            #expect(plain.output.contains("\"method\": \"GET\""), "\(plain)")
        }
    }

    @Test func clientsComeByIPv6() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["proxy": ["listen: [\"[::1]:\(bed.port())\", \"127.0.0.1:0\"]"]])
            #expect(shared.proxy.address == "[::1]")
            let run = try await shared.curl(shared.url + "/echo")
            #expect(run.output.contains("\"method\": \"GET\""), "\(run)")
        }
    }

    @Test func aStrangerIsNotServed() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["proxy": ["allow_clients: [10.0.0.0/8, \"::1\"]"]])
            let answer = try await shared.proxy.connect(to: shared.authority)
            #expect(answer.status == 403, "\(answer)")
        }
    }

    @Test(arguments: ["/", "/anything"])
    func aRequestToTheProxyItselfIsTold(path: String) async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let run = try await bed.run(["curl", "-sSi", "--noproxy", "*", proxy.url + path])
            #expect(run.output.hasPrefix("HTTP/1.1 400 "), "\(run)")
            #expect(run.output.contains("HTTPS_PROXY"), "\(run)")
        }
    }

    @Test func aRequestForTLSOnAPlainPortIsNoCrash() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let run = try await bed.run([
                "curl", "-sS", "--noproxy", "*", "https://127.0.0.1:\(proxy.port)/",
            ])
            #expect(!run.succeeded)
            #expect(try await proxy.connect(to: "127.0.0.1:1").status == 502)
        }
    }
}
