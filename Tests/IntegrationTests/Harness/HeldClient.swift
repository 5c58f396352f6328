/// `Peers/held_client.py`: a client with a connection that stays idle between steps, for as long as a test wants.
struct HeldClient: Sendable {
    private let control: RawConnection

    /// - Parameters:
    ///   - trust: the certificates that it trusts; nil: the proxy's authority.
    ///   - user: `name:password` for the proxy.
    init(in shared: SharedBed, trust: String? = nil, user: String? = nil) async throws {
        let peer = try await PythonPeer(
            in: shared.bed, script: "held_client.py",
            [
                "--proxy", "\(shared.proxy.port)", "--authority", shared.authority, "--ca",
                trust ?? shared.proxy.authority,
            ] + (user.map { ["--user", $0] } ?? []))
        control = try RawConnection(port: peer.port)
    }

    /// The status of a CONNECT on a new connection.
    func connect() async throws -> String { try await ask("connect") }

    /// Starts TLS on that connection: `new` or `resumed`.
    func secure() async throws -> String { try await ask("secure") }

    /// The status of a request within it; `closed` if the connection has ended.
    func get(_ path: String = "/echo") async throws -> String { try await ask("get \(path)") }

    /// The status of a request to change to the origin's echo protocol.
    func upgrade() async throws -> String { try await ask("upgrade") }

    /// What the origin echoes; `closed` if the connection has ended.
    func echo(_ word: String) async throws -> String { try await ask("echo \(word)") }

    private func ask(_ command: String) async throws -> String {
        try await control.send(command + "\n")
        var line: [UInt8] = []
        while true {
            let byte = try await control.receive(atMost: 1)
            guard let byte = byte.first else { throw TestBedError("the client ended at \(command)") }
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
    }
}
