import Testing

/// Clients of the control socket, the admin port and the run socket that go silent. All at once: each has ten seconds.
@Suite(.timeLimit(.minutes(5)))
struct SilentControlClientTests {
    @Test(arguments: [false, true]) func allConnectionsAreClosed(isAdminSecure: Bool) async throws {
        try await withTestBed { bed in
            let chain = try TestRoots().chain("proxy.test")
            try bed.file("proxy/admin.pem", chain.pem)
            try bed.file("proxy/admin.key", chain.keyPEM)
            try bed.file("proxy/token", String(repeating: "0123456789abcdef", count: 2) + "\n")
            let tls = ["tls: {certificate: admin.pem, private_key: admin.key}", "token_file: token"]
            let shared = try await OriginBed.prepare(
                bed,
                sections: [
                    "admin": ["listen: [127.0.0.1:0, unix:admin.sock]"] + (isAdminSecure ? tls : []),
                    "timeouts": ["idle_upstream: 100ms"],
                ])
            let admin = try await AdminClient(shared.proxy).port
            let before = try await shared.footprint()
            let many = String(repeating: "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 2000)
            var clients: [RawConnection] = []
            for bytes in ["", "GET /status HTT", "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n", many] {
                for name in ["state/pinproxy/control.sock", "admin.sock", "state/pinproxy/runs.sock"] {
                    let path = bed.path("proxy/\(name)")
                    clients.append(try await Self.client(try RawConnection(path: path), sending: bytes))
                }
                clients.append(try await Self.client(try RawConnection(port: admin), sending: bytes))
            }
            // A part of a TLS handshake.
            clients.append(try await Self.client(try RawConnection(port: admin), sending: "\u{16}\u{3}\u{1}"))
            try await shared.servesOthers()
            #expect(try await shared.tasks.ask("GET", "/healthz").status == 200)
            try await shared.hasGivenBack(since: before)
            withExtendedLifetime(clients) {}
        }
    }

    /// The proxy may close the connection before all is sent.
    private static func client(_ connection: RawConnection, sending bytes: String) async throws -> RawConnection {
        try? await connection.send(bytes)
        return connection
    }
}
