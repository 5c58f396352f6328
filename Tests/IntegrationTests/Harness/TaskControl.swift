import Foundation

/// `pinproxy tasks` for the proxy of a test.
struct TaskControl: Sendable {
    let bed: TestBed
    let proxy: ProxyProcess

    /// A task as `--json` has it, as far as tests look at it.
    struct Summary: Decodable, Sendable {
        struct Transaction: Decodable, Sendable {
            let remoteAddress: String
            let localAddress: String?
            let networkProtocol: String?
            let stream: Int?
            let reused: Bool
            let nameLookup: Double?
            let connect: Double?
            let tls: Double?
            let began: Double
            let requestSent: Double?
            let firstByte: Double?
            let lastByte: Double?
        }

        let id: Int
        let kind: String
        let state: String
        let phase: String
        let client: String
        let `protocol`: String?
        let stream: Int?
        let clientUser: Int?
        let clientUserName: String?
        let clientProcess: Int?
        let clientExecutable: String?
        let method: String
        let host: String
        let port: Int
        let path: String
        let status: Int
        let bytesUp: Int
        let bytesDown: Int
        let totalUp: Int?
        let totalDown: Int?
        let cause: String?
        let transactions: [Transaction]
    }

    struct List: Decodable, Sendable {
        let tasks: [Summary]
        let silentWorkers: [String]
    }

    var socket: String {
        let path = bed.path("proxy/state/pinproxy/control.sock")
        // The proxy may have mounted its state directory where no other process sees it.
        return FileManager.default.fileExists(atPath: path) ? path : "/proc/\(proxy.process.identifier)/root\(path)"
    }

    func pinproxy(_ arguments: String...) async throws -> Run {
        try await bed.run(
            [ProxyProcess.executable] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed))
    }

    /// What the control socket answers to one request.
    func ask(_ method: String, _ target: String) async throws -> RawResponse {
        let connection = try RawConnection(path: socket)
        try await connection.send("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let bytes = try await connection.receiveAll()
        guard let response = RawResponse(bytes) else { throw TestBedError("no whole answer to \(target)") }
        return response
    }

    func list() async throws -> [Summary] {
        let answer = try await ask("GET", "/tasks")
        guard answer.status == 200 else { throw TestBedError("\(answer)") }
        return try Self.decoder.decode(List.self, from: Data(answer.body.utf8)).tasks
    }

    /// The only task, as soon as there is one.
    func only(where fits: (Summary) -> Bool = { _ in true }) async throws -> Summary {
        var found: Summary?
        try await eventually("one task") {
            let all = try await list()
            found = all.count == 1 && fits(all[0]) ? all[0] : nil
            return found != nil
        }
        guard let found else { throw TestBedError("no task") }
        return found
    }

    func show(_ id: Int) async throws -> Summary {
        let answer = try await ask("GET", "/tasks/\(id)")
        guard answer.status == 200 else { throw TestBedError("\(answer)") }
        return try Self.decoder.decode(Summary.self, from: Data(answer.body.utf8))
    }

    /// `suspend`, `resume` or `cancel`: the task as it is after that.
    @discardableResult
    func order(_ order: String, _ id: Int) async throws -> Summary {
        let answer = try await ask("POST", "/tasks/\(id)/\(order)")
        guard answer.status == 200 else { throw TestBedError("\(answer)") }
        return try Self.decoder.decode(Summary.self, from: Data(answer.body.utf8))
    }

    private static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }
}

extension SharedBed {
    var tasks: TaskControl { TaskControl(bed: bed, proxy: proxy) }
}
