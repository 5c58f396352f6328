import Glibc
import Testing

@testable import PinproxyEventLoop

/// A DNS server over UDP on the test's own loop: answers as the test decides, and counts the queries.
final class ScriptedNameServer: SocketHandler {
    enum Kind: UInt16 {
        case a = 1
        case aaaa = 28
    }

    enum Reply {
        /// Addresses with their time to live in seconds; only those of the requested kind are sent.
        case addresses([(String, timeToLive: UInt32)])
        case noSuchName
        case failure
        case silence
    }

    /// For `ares_set_servers_ports_csv`.
    let address: SocketAddress
    private(set) var questions: [String: Int] = [:]
    /// Queries of this kind are never answered.
    var dropped: Kind?
    private var source: SocketSource?
    private let descriptor: CInt
    private let reply: (String) -> Reply

    init(_ loop: EventLoop, reply: @escaping (String) -> Reply) throws {
        self.reply = reply
        descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        let raw = descriptor
        try #require(any.withSockaddr { bind(raw, $0, $1) } == 0)
        address = try #require(Socket.localAddress(raw))
        source = SocketSource(loop: loop, descriptor: raw, handler: self)
        source?.wantsRead = true
    }

    deinit {
        source?.invalidate()
        _ = close(descriptor)
    }

    /// How often the name was queried, A and AAAA together.
    func count(_ name: String) -> Int {
        questions[name] ?? 0
    }

    func socketReady(_ readiness: Readiness) {
        var query = [UInt8](repeating: 0, count: 1500)
        var received = 0
        let raw = descriptor
        let client = SocketAddress {
            received = recvfrom(raw, &query, query.count, 0, $0, $1)
            return CInt(received)
        }
        guard let client, received > 12, let answer = answer(to: Array(query[..<received])) else { return }
        let sent = client.withSockaddr { sendto(raw, answer, answer.count, 0, $0, $1) }
        #expect(sent == answer.count)
    }

    private func answer(to query: [UInt8]) -> [UInt8]? {
        var labels: [String] = []
        var index = 12
        while index < query.count, query[index] != 0 {
            let end = index + 1 + Int(query[index])
            guard end < query.count else { return nil }
            labels.append(String(decoding: query[(index + 1)..<end], as: UTF8.self))
            index = end
        }
        guard index + 5 <= query.count,
            let kind = Kind(rawValue: UInt16(query[index + 1]) << 8 | UInt16(query[index + 2]))
        else { return nil }
        let name = labels.joined(separator: ".").lowercased()
        questions[name, default: 0] += 1
        if kind == dropped { return nil }
        var code: UInt8 = 0
        var records: [[UInt8]] = []
        switch reply(name) {
        case .silence: return nil
        case .noSuchName: code = 3
        case .failure: code = 2
        case .addresses(let addresses):
            for (text, timeToLive) in addresses {
                guard let bytes = IPAddress(text)?.bytes, (bytes.count == 4) == (kind == .a) else { continue }
                // A pointer to the question's name, type, class, time to live, length.
                let ttl = (0..<4).map { UInt8(truncatingIfNeeded: timeToLive >> (24 - 8 * $0)) }
                records.append([0xc0, 12, 0, UInt8(kind.rawValue), 0, 1] + ttl + [0, UInt8(bytes.count)] + bytes)
            }
        }
        // Response, recursion desired and available.
        return [query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, UInt8(records.count), 0, 0, 0, 0]
            + query[12..<(index + 5)] + records.joined()
    }
}
