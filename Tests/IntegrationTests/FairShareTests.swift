import Foundation
import Testing

/// A local user takes all that one user may have, and another is still served. The crowd runs as nobody, the test as
/// root.
@Suite(.timeLimit(.minutes(5)), .enabled(if: IsolationBed.isTransparencyAvailable, "needs root, to be another user"))
struct FairShareTests {
    /// - Parameter text: what each of them sends, with Python escapes; `NUMBER` is its number, with four digits.
    private func crowd(_ bed: TestBed, _ count: Int, at place: String, _ text: String = "") async throws -> ChildProcess
    {
        let process = try await bed.start(
            IsolationBed.asNobody + [PythonPeer.python, PythonPeer.path("crowd.py"), "\(count)", place, text])
        _ = try await process.output.first(awaiting: "the crowd") { $0 == "open" ? $0 : nil }
        return process
    }

    private func answers(_ crowd: ChildProcess, _ line: String) -> Int {
        crowd.output.lines.count { $0.contains(line) }
    }

    @Test func comparisonsOfPasswords() async throws {
        try await withTestBed { bed in
            // Each takes seconds: the test stops the proxy before the second one is done.
            try bed.file("proxy/users", "ada:$2b$16$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n")
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["users: users"]])
            // "ada:wrong" with a number each.
            let text =
                #"""
                CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: Basic \#
                YWRhOndyb25nNUMBER\r\n\r\n
                """#
            let many = try await crowd(bed, 40, at: "tcp:\(proxy.port)", text)
            try await eventually("what is too much to be turned away") {
                answers(many, "503") == 24 || answers(many, "407") > 0
            }
            #expect(answers(many, "503") == 24, "\(many.output.lines)")
            let said = try await proxy.events.first("users.limit")
            #expect(said["cause"] == "16 passwords of user 65534 are waiting to be checked", "\(said)")
            let refused = try await proxy.events.first("exchange")
            #expect(
                refused["status"] == "503"
                    && refused["cause"]?.hasPrefix("16 passwords of user 65534 are waiting") == true, "\(refused)")
            // Other users still get places: root gets 16.
            var own: [RawConnection] = []
            for number in 0..<17 {
                let credentials = Data("ada:own\(number)".utf8).base64EncodedString()
                let connection = try RawConnection(to: proxy)
                try await connection.send(
                    "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic \(credentials)\r\n\r\n")
                own.append(connection)
            }
            let turnedAway = try await proxy.events.first("exchange") {
                $0["cause"]?.contains("user 0 are waiting") == true
            }
            #expect(turnedAway["status"] == "503", "\(turnedAway)")
            #expect(proxy.events.all("exchange").count { $0["client_uid"] == "0" } == 1)
        }
    }

    @Test func connectionsToTheAdminPort() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: AdminClient.section)
            let admin = try await AdminClient(proxy)
            // The oldest, and not yet asking.
            let patient = try RawConnection(port: admin.port)
            try await patient.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
            #expect(try await admin.ask("GET", "/healthz").status == 200)
            let many = try await crowd(bed, 100, at: "tcp:\(admin.port)", #"GET /st"#)
            try await eventually("the crowd's own to be closed") { answers(many, "closed") == 84 }
            try await patient.send("Connection: close\r\n\r\n")
            #expect(try await patient.response().status == 200)
        }
    }

    @Test func watchers() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: AdminClient.section)
            let admin = try await AdminClient(proxy)
            let many = try await crowd(
                bed, 12, at: "tcp:\(admin.port)", #"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"#)
            try await eventually("what is too much to be turned away") { answers(many, "503") == 4 }
            let watcher = try RawConnection(port: admin.port)
            try await watcher.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await watcher.response()["content-type"] == "text/event-stream")
        }
    }

    @Test func connectionsThatBeginNoRun() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            chmod(bed.directory, 0o755)
            for folder in ["proxy", "proxy/state"] { chmod(bed.path(folder), 0o755) }
            let socket = bed.path("proxy/state/pinproxy/runs.sock")
            let patient = try RawConnection(path: socket)
            try await patient.send("POST /runs HTTP/1.1\r\nHost: localhost\r\n")
            let many = try await crowd(bed, 100, at: "unix:\(socket)", "POST")
            try await eventually("the crowd's own to be closed") { answers(many, "closed") == 84 }
            try await patient.send("Authorization: Bearer \(String(repeating: "0", count: 64))\r\n\r\n")
            let begun = String(decoding: try await patient.receive(), as: UTF8.self)
            #expect(begun.hasPrefix("HTTP/1.1 200"), "\(begun)")
            _ = proxy
        }
    }
}
