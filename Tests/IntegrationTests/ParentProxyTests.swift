import Testing

/// `upstream.parent`: CONNECT through another proxy, which here is a second pinproxy that tunnels and
/// asks for credentials.
@Suite(.timeLimit(.minutes(5)))
struct ParentProxyTests {
    @Test func everythingGoesThroughTheParent() async throws {
        try await withTestBed { bed in
            // The parent knows the name and the child doesn't: the parent resolves it.
            try await AuthenticationBed.usersFile(in: bed, folder: "parent")
            let parent = try await ProxyProcess(
                in: bed, folder: "parent", pins: "defaults: {action: tunnel}\n", trust: nil,
                hosts: [OriginBed.name: "127.0.0.1"], sections: ["proxy": ["users: users"]])
            let roots = try TestRoots()
            let leaf = try roots.leaf(OriginBed.name, "wrong.test")
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let proxy = try await ProxyProcess(
                in: bed,
                pins: """
                    hosts:
                      - match: \(OriginBed.name)
                        pinning: public-key
                        pins: [\(try await leaf.pin(bed))]

                    """,
                trust: roots.write(to: bed),
                sections: [
                    "upstream": ["parent: http://ada:secret@\(parent.address):\(parent.port)"],
                    "timeouts": ["idle_upstream: 100ms"],
                ])
            let run = try await bed.curl(via: proxy, ["https://\(OriginBed.name):\(origin.port)/echo"])
            #expect(run.output.contains("\"method\": \"GET\""), "\(run)")
            #expect(!run.output.contains("Proxy-Authorization"), "\(run)")
            // A tunnel's line is logged when it ends, which idle_upstream causes.
            let event = try await parent.events.first("exchange")
            #expect(event["method"] == "CONNECT" && event["host"] == OriginBed.name, "\(event)")

            let unknown = try await proxy.connect(to: "unknown.test:\(origin.port)")
            #expect(unknown.status == 502, "\(unknown)")
        }
    }

    @Test func aParentThatRefusesTheCredentialsIsNamed() async throws {
        try await withTestBed { bed in
            try await AuthenticationBed.usersFile(in: bed, folder: "parent")
            let parent = try await ProxyProcess(
                in: bed, folder: "parent", trust: nil, sections: ["proxy": ["users: users"]])
            let proxy = try await ProxyProcess(
                in: bed, trust: nil,
                sections: ["upstream": ["parent: http://ada:wrong@\(parent.address):\(parent.port)"]])
            let answer = try await proxy.connect(to: "origin.test:443")
            // A 407 from the parent must not reach the client, which has no credentials for it.
            #expect(answer.status == 502, "\(answer)")
            #expect(answer.description.contains("407"), "\(answer)")
        }
    }

    /// The URL decides the host, whatever Host says (RFC 9112 section 3.2.2).
    @Test func aParentIsToldTheHostOfTheURL() async throws {
        try await withTestBed { bed in
            // An origin that logs its requests takes the parent's role.
            let parent = try await PythonPeer.origin(in: bed, chain: nil)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["upstream": ["parent: http://127.0.0.1:\(parent.port)"]])
            let connection = try RawConnection(to: proxy)
            try await connection.send("GET http://right.test:81/echo HTTP/1.1\r\nHost: wrong.test\r\n\r\n")
            let request = try await parent.events.first("request")
            #expect(request["target"] == "http://right.test:81/echo", "\(request)")
            #expect(request["lines"]?.contains("Host: right.test:81") == true, "\(request)")
            #expect(request["lines"]?.contains("wrong.test") == false, "\(request)")
        }
    }

    @Test func aParentThatIsNotThereIsABadGateway() async throws {
        try await withTestBed { bed in
            let port = try bed.port()
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["upstream": ["parent: http://127.0.0.1:\(port)"]])
            let answer = try await proxy.connect(to: "origin.test:443")
            #expect(answer.status == 502, "\(answer)")
        }
    }
}
