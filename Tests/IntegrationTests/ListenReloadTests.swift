import Foundation
import Testing

/// What a reload applies besides the policy: listeners, and the log.
@Suite(.timeLimit(.minutes(5)))
struct ListenReloadTests {
    private func rewrite(_ bed: TestBed, _ sections: ProxyProcess.Sections) throws {
        try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil, sections: sections)
    }

    @Test func listenersComeAndGo() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let idle = try RawConnection(to: proxy)
            // The first stays, whatever port it has.
            try rewrite(bed, ["proxy": ["listen: [\"127.0.0.1:0\", \"127.0.0.2:0\"]"]])
            let more = try await proxy.reload()
            let addresses = try #require(more["listen"]?.components(separatedBy: ", "))
            #expect(addresses.count == 2 && addresses[0] == "127.0.0.1:\(proxy.port)", "\(more)")
            let second = "http://" + addresses[1]
            let run = try await bed.run(["curl", "-sSi", "--noproxy", "*", second])
            #expect(run.output.hasPrefix("HTTP/1.1 400"), "\(run)")

            try rewrite(bed, ["proxy": ["listen: 127.0.0.2:0"]])
            #expect(try await proxy.reload()["listen"] == addresses[1])
            try await eventually("the first to be closed") { (try? RawConnection(to: proxy)) == nil }
            // Connected clients stay.
            try await idle.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await idle.response().status == 400)
            #expect(proxy.events.all("config.warning").allSatisfy { $0["cause"]?.contains("next start") == false })
        }
    }

    @Test func anAddressThatCannotBeHadChangesNothing() async throws {
        try await withTestBed { bed in
            let other = try await ProxyProcess(in: bed, folder: "other", trust: nil)
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            try rewrite(
                bed, ["proxy": ["listen: [\"127.0.0.1:0\", \"127.0.0.1:\(other.port)\"]"], "log": ["level: error"]])
            let error = try await proxy.reload()
            #expect(
                error.name == "config.error"
                    && error["cause"]?.contains("127.0.0.1:\(other.port) is already in use") == true, "\(error)")
            #expect((try? RawConnection(to: proxy)) != nil)
            // The proxy's own addresses are named as such if they conflict.
            try rewrite(bed, ["proxy": ["listen: 0.0.0.0:\(proxy.port)"]])
            let own = try await proxy.reload()
            #expect(own["cause"]?.contains("while the proxy listens on 127.0.0.1:\(proxy.port)") == true, "\(own)")
        }
    }

    @Test func theLogFollows() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            try rewrite(bed, ["log": ["level: warning", "access: false"]])
            proxy.process.send(signal: SIGHUP)
            // Nothing is said of that one. The next is said, in text.
            try rewrite(bed, ["log": ["level: notice", "format: text"]])
            try await eventually("the text of a reload") {
                proxy.process.send(signal: SIGHUP)
                return proxy.process.output.lines.contains { $0.contains(" notice config.reload files=") }
            }
        }
    }
}
