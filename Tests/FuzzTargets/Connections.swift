internal import Glibc
import PinproxyClients
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import Synchronization

/// A whole client connection: the input decides what both sides send, and how it is split into pieces and turns.
///
/// The input has the client's bytes, then the answer of each upstream connection, after lines `--- next`.
enum Connections {
    // unchecked: only used under the lock.
    nonisolated(unsafe) private static var proxy: ScriptedProxy?
    private static let lock = Mutex(())

    /// Unencrypted, to the proxy and to its parent.
    static func connection(_ bytes: [UInt8]) {
        run(Choices(bytes, count: 4)) { _, _ in (.none, .none) }
    }

    /// Inside TLS on both sides. At least one side speaks HTTP/2, as chosen by the last byte.
    static func http2(_ bytes: [UInt8]) {
        run(Choices(bytes, count: 5)) { choices, proxy in
            let choice = choices.byte() % 3
            return proxy.openings(client: choice == 2 ? "http/1.1" : "h2", origin: choice == 1 ? "http/1.1" : "h2")
        }
    }

    private typealias Openings = (client: ScriptedPeer.Opening, origin: ScriptedPeer.Opening)

    private static func run(_ choices: Choices, _ openings: (inout Choices, ScriptedProxy) -> Openings) {
        lock.withLock { _ in
            do {
                let proxy = try Self.proxy ?? ScriptedProxy()
                Self.proxy = proxy
                var choices = choices
                let opening = openings(&choices, proxy)
                try run(choices, opening, proxy)
            } catch {
                fatalError("the trial itself failed: \(error)")
            }
        }
    }

    /// Turns after which the proxy stops, and everything has to be closed.
    private static let patience = 100
    /// Rounds without progress that end a trial; deferred work takes one or two. Leaves out the proxy's timers: they
    /// fired in some slow trials only, by chance.
    private static let stillness = 20

    private static func obey(_ order: ClientConnection.TaskOrder, _ connection: ClientConnection) {
        for task in connection.tasks { _ = connection.obey(order, task: task.id, because: "fuzz") }
    }

    private static func run(_ choices: Choices, _ opening: Openings, _ proxy: ScriptedProxy) throws {
        var choices = choices
        var cuts = Cuts(seed: choices.byte())
        let (isWhole, ending) = (choices.flag(), choices.byte())
        let turns = 1 + Int(choices.byte()) % 3
        var scripts = parts(of: choices.input, separatedBy: "next", most: 8)
        var ended = 0
        let (descriptor, connection) = try proxy.accept { ended += 1 }
        let client = ScriptedPeer(descriptor, opening.client, script: scripts.removeFirst())
        var origins: [ScriptedPeer] = []
        // All rounds, those after the opening, and the last ones with nothing left to send.
        var (round, step, quiet, still, moved) = (0, 0, 0, 0, 0)
        repeat {
            round += 1
            if client.isReady { step += 1 }
            client.send(isWhole ? .max : cuts.next())
            switch (step, ending >> 5) {
            case (2, 1), (2, 2), (2, 3): obey(.suspend, connection)
            case (4, 1): obey(.resume, connection)
            case (4, 2), (2, 4): obey(.cancel, connection)
            case (4, 3), (3, 5): connection.drain()
            default: break
            }
            for _ in 0..<turns { proxy.loop.runReady() }
            while let socket = proxy.nextUpstream() {
                let script = scripts.isEmpty ? [] : scripts.removeFirst()
                origins.append(ScriptedPeer(socket.release(), opening.origin, script: script))
            }
            for origin in origins {
                origin.receive()
                // An origin answers a request.
                if origin.hasHead { origin.send(isWhole ? .max : cuts.next()) }
                if origin.isDone { origin.end(ending & 3) }
            }
            client.receive()
            if client.isDone, ending & 4 != 0 { client.end(ending >> 3 & 3) }
            quiet = client.isDone && origins.allSatisfy(\.isDone) ? quiet + 1 : 0
            let now = origins.reduce(client.moved + origins.count) { $0 + $1.moved }
            (still, moved) = (now == moved ? still + 1 : 0, now)
        } while round < 10 * patience && quiet < 4 && still < stillness

        check(client, origins)
        client.close()
        for origin in origins { origin.close() }
        // The end may be a half-close: the exchange continues, and pauses before it requests the rest of a download.
        for turn in 0..<2 * patience where ended == 0 {
            if turn == patience { connection.stop() }
            proxy.loop.runReady()
            while let socket = proxy.nextUpstream() { _ = consume socket }
        }
        require(
            ended == 1,
            """
            a connection whose peers are gone is closed once, not \(ended) times; after \(round) rounds the client has \
            \(Heads.shown(client.received)), the origins \(origins.map { Heads.shown($0.received) })
            """)
        // Late upstream connections, and the pool's.
        for _ in 0..<4 { proxy.loop.runReady() }
        while let socket = proxy.nextUpstream() { _ = consume socket }
        for _ in 0..<4 { proxy.loop.runReady() }
        withExtendedLifetime(connection) {}
    }

    private static func check(_ client: ScriptedPeer, _ origins: [ScriptedPeer]) {
        for origin in origins where !origin.speaksHTTP2 { Requests.check(origin.received) }
        if client.speaksHTTP2 { return }
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
}

/// The data that arrives at an origin.
private enum Requests {
    /// Checks for requests in order, perhaps with a truncated last one, until something other than HTTP follows.
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
                return require(
                    false,
                    """
                    what an origin gets reads as \(progress): \
                    \(String(decoding: message, as: UTF8.self).debugDescription)
                    """
                )
            }
            if head.method == .connect || head.wantsUpgrade { return }
            require(
                head.hasVia,
                "every request is the proxy's own: \(String(decoding: message, as: UTF8.self).debugDescription)")
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
