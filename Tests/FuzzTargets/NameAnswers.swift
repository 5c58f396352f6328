internal import Glibc
import PinproxyAddresses
import PinproxyEventLoop

/// Answers of a name server: c-ares parses them, and the resolver turns them into addresses.
enum NameAnswers {
    private static let question = "name.test"

    /// The input is an answer without its number and its question, which are those of the query.
    static func answer(_ bytes: [UInt8]) {
        do { try ask(bytes) } catch { fatalError("the trial itself failed: \(error)") }
    }

    private static func ask(_ bytes: [UInt8]) throws {
        let (server, port) = try listen()
        defer { close(server) }
        let loop = try EventLoop()
        let resolver = try Resolver(loop: loop, cache: ResolverCache(), server: "127.0.0.1:\(port)")
        var found: [Result<[IPAddress], ResolutionError>] = []
        let resolution = resolver.resolve(question) { found.append($0) }
        var asked: [[UInt8]] = []
        for _ in 0..<12 where found.isEmpty {
            loop.runReady()
            while let (query, client) = receive(server) {
                asked.append(query)
                if asked.count < 8 { send(reply(to: query, bytes), server, to: client) }
            }
        }
        require(!asked.isEmpty || !found.isEmpty, "a name is asked for")
        if found.isEmpty { resolution.cancel() }
        for _ in 0..<4 { loop.runReady() }
        require(found.count <= 1, "a look-up ends once")
        guard case .success(let addresses)? = found.first else { return }
        require(
            !addresses.isEmpty && addresses.count <= bytes.count / 4, "addresses come from the answer: \(addresses)")
        require(Set(addresses).count == addresses.count, "an address is found once: \(addresses)")
    }

    private static func reply(to query: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        guard query.count > 12 else { return bytes }
        let name = query[12...].prefix { $0 != 0 }
        // The end of the name, type and class.
        let question = query[12..<min(query.count, 12 + name.count + 5)]
        return Array(query[..<2] + bytes.prefix(10) + question + bytes.dropFirst(10))
    }

    private static func listen() throws -> (CInt, UInt16) {
        let socket = Glibc.socket(
            AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var loopback = sockaddr_in()
        loopback.sin_family = sa_family_t(AF_INET)
        loopback.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let bound = withUnsafePointer(to: loopback) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0, let address = Socket.localAddress(socket) else {
            throw SystemError(code: errno, call: "bind")
        }
        return (socket, address.port)
    }

    private static func receive(_ socket: CInt) -> ([UInt8], sockaddr_in)? {
        var piece = [UInt8](repeating: 0, count: 512)
        var client = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &client) { client in
            client.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(socket, &piece, piece.count, 0, $0, &length)
            }
        }
        return count < 0 ? nil : (Array(piece[..<count]), client)
    }

    private static func send(_ bytes: [UInt8], _ socket: CInt, to client: sockaddr_in) {
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafePointer(to: client) { client in
            _ = client.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(socket, bytes, bytes.count, 0, $0, length)
            }
        }
    }
}
