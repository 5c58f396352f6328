import Clients
import Session
import EventLoop
internal import Glibc
import HTTPWire
import Synchronization

/// A whole connection of a client: what both sides send comes from the input, in pieces and turns that it chooses.
///
/// The input is the client's bytes, then what each upstream connection answers, after lines `--- next`.
enum Connections {
    // unchecked: only used under the lock.
    nonisolated(unsafe) private static var proxy: ScriptedProxy?
    private static let lock = Mutex(())

    static func connection(_ bytes: [UInt8]) {
        lock.withLock { _ in
            do {
                let proxy = try Self.proxy ?? ScriptedProxy()
                Self.proxy = proxy
                try run(bytes, proxy)
            } catch {
                fatalError("the trial itself failed: \(error)")
            }
        }
    }

    /// Turns after which the proxy ends, and everything has to be closed.
    private static let patience = 100

    private static func obey(_ order: ClientConnection.TaskOrder, _ connection: ClientConnection) {
        for task in connection.tasks { _ = connection.obey(order, task: task.id, because: "fuzz") }
    }

    private static func run(_ bytes: [UInt8], _ proxy: ScriptedProxy) throws {
        var choices = Choices(bytes, count: 4)
        var cuts = Cuts(seed: choices.byte())
        let (isWhole, ending) = (choices.flag(), choices.byte())
        let turns = 1 + Int(choices.byte()) % 3
        var scripts = parts(choices.input)
        var ended = 0
        var client = Side(script: scripts.removeFirst())
        let connection: ClientConnection
        (client.descriptor, connection) = try proxy.accept { ended += 1 }
        var origins: [Side] = []
        // All rounds, and the last ones without anything left to send.
        var (round, quiet) = (0, 0)
        repeat {
            round += 1
            client.send(isWhole ? .max : cuts.next())
            switch (round, ending >> 5) {
            case (2, 1), (2, 2), (2, 3): obey(.suspend, connection)
            case (4, 1): obey(.resume, connection)
            case (4, 2), (2, 4): obey(.cancel, connection)
            case (4, 3), (3, 5): connection.drain()
            default: break
            }
            for _ in 0..<turns { proxy.loop.runReady() }
            while case .accepted(let socket, _) = Socket.accept(proxy.parent.raw) {
                origins.append(Side(script: scripts.isEmpty ? [] : scripts.removeFirst()))
                origins[origins.count - 1].descriptor = socket.release()
            }
            for index in origins.indices {
                origins[index].receive()
                // An origin answers a request.
                if !origins[index].received.isEmpty { origins[index].send(isWhole ? .max : cuts.next()) }
                if origins[index].isDone { origins[index].end(ending & 3) }
            }
            client.receive()
            if client.isDone, ending & 4 != 0 { client.end(ending >> 3 & 3) }
            quiet = client.isDone && origins.allSatisfy(\.isDone) ? quiet + 1 : 0
        } while round < 10 * patience && quiet < 4

        check(client, origins)
        client.close()
        for index in origins.indices { origins[index].close() }
        // The end may be half a close: the exchange continues, and pauses before it asks for the rest of a download.
        for turn in 0..<2 * patience where ended == 0 {
            if turn == patience { connection.stop() }
            proxy.loop.runReady()
            while case .accepted(let socket, _) = Socket.accept(proxy.parent.raw) { _ = consume socket }
        }
        require(
            ended == 1,
            """
            a connection whose peers are gone is closed once, not \(ended) times; after \(round) rounds the client has \
            \(Heads.shown(client.received)), the origins \(origins.map { Heads.shown($0.received) })
            """)
        // Late upstream connections, and the pool's.
        for _ in 0..<4 { proxy.loop.runReady() }
        while case .accepted(let socket, _) = Socket.accept(proxy.parent.raw) { _ = consume socket }
        for _ in 0..<4 { proxy.loop.runReady() }
        withExtendedLifetime(connection) {}
    }

    private static func parts(_ input: [UInt8]) -> [[UInt8]] {
        let separator = Array("\n--- next\n".utf8)
        var parts: [[UInt8]] = []
        var rest = input[...]
        while parts.count < 7, let range = rest.firstRange(of: separator) {
            parts.append(Array(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [Array(rest)]
    }

    private static func check(_ client: Side, _ origins: [Side]) {
        for origin in origins { Requests.check(origin.received) }
        let answers = client.received
        guard !answers.isEmpty, !answers.starts(with: [0x15, 3]), !answers.starts(with: [0x16, 3]) else { return }
        var parser = HeadParser(limit: 1 << 16)
        var head = ResponseHead()
        switch parser.parseResponse(answers.span, to: .get, into: &head) {
        case .complete: break
        // A blocked or cut head.
        case .incomplete: require("HTTP/1.1 ".utf8.starts(with: answers.prefix(9)), "a client gets responses")
        default: require(false, "a client gets what reads as a response")
        }
    }

    /// One end of a socket, with what it is going to send.
    private struct Side {
        var descriptor: CInt = -1
        let script: [UInt8]
        private(set) var sent = 0
        private(set) var received: [UInt8] = []
        private var isClosed = false

        init(script: [UInt8]) { self.script = script }

        var isDone: Bool { isClosed || sent == script.count }

        mutating func send(_ count: Int) {
            guard !isDone else { return }
            let count = min(count, script.count - sent)
            let written = script[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
            }
            if written > 0 { sent += written } else if errno != EAGAIN { sent = script.count }
        }

        mutating func receive() {
            guard !isClosed else { return }
            withUnsafeTemporaryAllocation(byteCount: 16384, alignment: 1) { piece in
                while case let count = recv(descriptor, piece.baseAddress, piece.count, CInt(MSG_DONTWAIT)), count > 0 {
                    received += piece[..<count]
                }
            }
        }

        /// - Parameter how: it stays open, or ends its side, or closes, or resets.
        mutating func end(_ how: UInt8) {
            guard !isClosed else { return }
            switch how {
            case 0: break
            case 1: shutdown(descriptor, CInt(SHUT_WR))
            case 2: close()
            default:
                var linger = linger(l_onoff: 1, l_linger: 0)
                setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
                close()
            }
        }

        mutating func close() {
            guard !isClosed else { return }
            isClosed = true
            Glibc.close(descriptor)
        }
    }
}

/// What arrives at an origin.
private enum Requests {
    /// It is requests in order, the last one perhaps cut, until something else than HTTP follows.
    static func check(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let message = Array(rest)
            var parser = HeadParser(limit: 1 << 16)
            var head = RequestHead()
            switch parser.parseRequest(message.span, into: &head) {
            case .incomplete: return
            case .complete: break
            case let progress:
                return require(false, "what an origin gets reads as \(progress): \(String(decoding: message, as: UTF8.self).debugDescription)")
            }
            if head.method == .connect || head.wantsUpgrade { return }
            rest = rest.dropFirst(Int(head.length))
            var scanner = BodyScanner(parser.framing.body)
            while !scanner.isEnded {
                var body = Array(rest)
                var span = body.mutableSpan
                switch scanner.scan(inPlace: &span) {
                case .passed(_, 0, false): return
                case .passed(_, let consumed, _): rest = rest.dropFirst(consumed)
                case .malformed(let error, _, _): return require(false, "an origin gets a body with a defect: \(error)")
                }
                if rest.isEmpty { break }
            }
        }
    }
}
