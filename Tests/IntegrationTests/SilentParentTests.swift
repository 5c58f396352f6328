import Testing

/// Parent proxies that go silent.
@Suite(.timeLimit(.minutes(5)))
struct SilentParentTests {
    @Test(arguments: [.backlog, .accept, .request, .halfHead, .continue] as [PythonPeer.Stage], [true, false])
    func theClientIsTold(_ stage: PythonPeer.Stage, isTunnel: Bool) async throws {
        try await withTestBed { bed in
            let parent = try await PythonPeer.silent(until: stage, in: bed)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil,
                sections: [
                    "upstream": ["parent: http://127.0.0.1:\(parent.port)"],
                    "timeouts": [
                        isTunnel || stage == .backlog ? "connect: 500ms" : "first_byte: 1s", "idle_upstream: 100ms",
                    ],
                ])
            let before = try proxy.openDescriptors()
            let client = try RawConnection(to: proxy)
            let line = isTunnel ? "CONNECT origin.test:443" : "GET http://origin.test:443/"
            try await client.send("\(line) HTTP/1.1\r\nHost: origin.test:443\r\nConnection: close\r\n\r\n")
            if stage != .backlog { _ = try await parent.events.first("silent") }
            #expect(try await proxy.connect(to: "not a name:1").status == 400, "others are answered")

            var answer = try await client.response()
            if answer.status == 100 { answer = try await client.response() }
            #expect(answer.status == 504 && answer["Proxy-Status"]?.contains("timeout") == true, "\(answer)")
            try await client.finishSending()
            try await eventually("descriptors to be closed") { try proxy.openDescriptors() <= before }
            #expect(proxy.process.unaskedEnding == nil)
        }
    }
}
