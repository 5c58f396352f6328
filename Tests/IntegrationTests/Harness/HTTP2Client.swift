import Foundation

/// `Peers/http2_client.py`: a client that speaks HTTP/2 inside a CONNECT, or on the proxy's own port, step by step.
struct HTTP2Client: Sendable {
    /// The result of a command, as far as tests need it.
    struct Reply: Decodable, Sendable, CustomStringConvertible {
        struct GoAway: Decodable, Sendable, Equatable {
            let last: Int
            let code: String
            let text: String
        }

        var `protocol`: String?
        var status: Int?
        var stream: Int?
        var fields: [[String]]?
        var count: Int?
        var sha256: String?
        var isPattern: Bool?
        var text: String?
        var ended: Bool?
        var reset: String?
        var trailers: [[String]]?
        var isClosed: Bool?
        var goaways: [GoAway]?
        var settings: [String: Int]?
        var order: [Int]?
        var cause: String?
        var error: String?

        /// The values of a field, in their order.
        func values(_ name: String) -> [String] { (fields ?? []).filter { $0[0] == name }.map { $0[1] } }

        var description: String {
            let parts: [(String, Any?)] = [
                ("status", status), ("fields", fields), ("count", count), ("text", text?.prefix(2000)),
                ("ended", ended), ("reset", reset),
                ("trailers", trailers), ("isClosed", isClosed), ("goaways", goaways), ("cause", cause),
                ("error", error),
            ]
            return parts.compactMap { name, value in value.map { "\(name): \($0)" } }.joined(separator: ", ")
        }
    }

    typealias Fields = [(String, String?)]

    private let control: RawConnection
    let authority: String

    /// Starts the program.
    static func program(in shared: SharedBed, trust: String? = nil) async throws -> PythonPeer {
        try await PythonPeer(
            in: shared.bed, script: "http2_client.py",
            ["--proxy", "\(shared.proxy.port)", "--ca", trust ?? shared.proxy.authority],
            interpreter: PythonPeer.pythonWithPackages)
    }

    /// Another client in a running program.
    init(of program: PythonPeer, authority: String) throws {
        control = try RawConnection(port: program.port)
        self.authority = authority
    }

    /// A connected client in a separate program.
    init(in shared: SharedBed, authority: String? = nil) async throws {
        try await self.init(of: Self.program(in: shared), authority: authority ?? shared.authority)
        let reply = try await connect()
        guard reply.protocol == "h2" else { throw TestBedError("no HTTP/2: \(reply)") }
    }

    // MARK: Commands

    @discardableResult
    func connect(
        protocols: [String] = ["h2"], front: Bool = false, name: String? = nil, settings: [String: Int]? = nil
    ) async throws -> Reply {
        var arguments: [String: Any] = ["authority": authority, "protocols": protocols, "front": front]
        arguments["name"] = name
        arguments["settings"] = settings
        return try await ask("connect", arguments)
    }

    /// - Parameters:
    ///   - fields: added to the usual ones, or replacing them; a nil value omits one.
    ///   - held: whether the stream's window stays as it is until ``take(_:of:)``.
    /// - Returns: the stream.
    func request(
        _ method: String = "GET", _ path: String = "/echo", _ fields: Fields = [], ends: Bool = true, held: Bool = false
    ) async throws -> Int {
        let list = fields.map { [$0.0, $0.1 ?? NSNull()] as [Any] }
        return try await stream(["method": method, "path": path, "fields": list, "end": ends, "held": held])
    }

    /// A request with exactly these fields.
    func request(exact fields: [[String]], ends: Bool = true) async throws -> Int {
        try await stream(["exact": fields, "end": ends])
    }

    private func stream(_ arguments: [String: Any]) async throws -> Int {
        let reply = try await ask("request", arguments)
        guard let stream = reply.stream else { throw TestBedError("no request: \(reply)") }
        return stream
    }

    /// - Parameter later: doesn't wait until the windows let the bytes through.
    func send(_ count: Int, on stream: Int, ends: Bool = false, later: Bool = false) async throws {
        try await ask("send", ["stream": stream, "count": count, "end": ends, "later": later])
    }

    func send(_ text: String, on stream: Int, ends: Bool = false, trailers: [[String]] = []) async throws {
        var arguments: [String: Any] = ["stream": stream, "text": text, "end": ends || !trailers.isEmpty]
        if !trailers.isEmpty { arguments["trailers"] = trailers }
        try await ask("send", arguments)
    }

    /// The next head, or how the stream ended without one.
    func head(_ stream: Int) async throws -> Reply { try await ask("head", ["stream": stream]) }

    /// The body received so far, once it is complete or has `count` bytes.
    func body(_ stream: Int, atLeast count: Int? = nil) async throws -> Reply {
        var arguments: [String: Any] = ["stream": stream]
        arguments["count"] = count
        return try await ask("body", arguments)
    }

    func take(_ count: Int, of stream: Int) async throws { try await ask("take", ["stream": stream, "count": count]) }
    func reset(_ stream: Int, _ code: String = "CANCEL") async throws {
        try await ask("reset", ["stream": stream, "code": code])
    }
    func raw(_ hex: String, times: Int = 1) async throws { try await ask("raw", ["hex": hex, "times": times]) }

    /// Waits until the proxy has handled everything sent before.
    @discardableResult
    func ping() async throws -> Reply { try await ask("ping") }

    /// The GOAWAYs received, once there are `number` of them.
    func goaways(_ number: Int) async throws -> [Reply.GoAway] {
        try await ask("goaway", ["number": number]).goaways ?? []
    }

    /// The settings that the proxy has announced, by their numbers.
    func settings() async throws -> [String: Int] { try await ask("settings").settings ?? [:] }

    /// Announces settings to the proxy.
    func announce(_ settings: [String: Int]) async throws { try await ask("settings", ["announced": settings]) }

    /// The streams of the DATA frames, in the order received.
    func order() async throws -> [Int] { try await ask("order").order ?? [] }

    /// Waits until the proxy has closed the connection.
    @discardableResult
    func closed() async throws -> Reply { try await ask("closed") }
    func close() async throws { try await ask("close") }

    @discardableResult
    private func ask(_ command: String, _ arguments: [String: Any] = [:]) async throws -> Reply {
        let text = try JSONSerialization.data(withJSONObject: arguments.merging(["do": command]) { $1 })
        try await control.send(Array(text) + [0x0A])
        var line: [UInt8] = []
        while line.last != 0x0A {
            let some = try await control.receive()
            guard !some.isEmpty else { throw TestBedError("the client ended at \(command)") }
            line += some
        }
        let reply = try JSONDecoder().decode(Reply.self, from: Data(line))
        if let error = reply.error { throw TestBedError("\(command): \(error)") }
        return reply
    }
}

extension HTTP2Client {
    /// The answer to a GET: its head and body.
    func get(_ path: String, _ fields: Fields = []) async throws -> (head: Reply, body: Reply) {
        let stream = try await request("GET", path, fields)
        return (try await head(stream), try await body(stream))
    }
}
