import PinproxyEventLoop
import PinproxySession

/// Limits the requests to each server at one time (NSURLSession's `httpMaximumConnectionsPerHost`). Over HTTP/1.1 each
/// needs a connection, and others wait in order. Over HTTP/2 they share connections, without a limit. On the session's
/// loop.
final class ConnectionTurns {
    /// A request's place among those in flight. Its release lets the next one begin.
    final class Turn {
        fileprivate let queue: Queue
        private let turns: ConnectionTurns

        fileprivate init(_ queue: Queue, of turns: ConnectionTurns) {
            self.queue = queue
            self.turns = turns
            queue.inFlight += 1
        }

        deinit {
            queue.inFlight -= 1
            turns.review(queue)
        }

        /// The server has answered, and thereby chosen its protocol.
        func answered() { turns.review(queue) }
    }

    /// One server's requests.
    fileprivate final class Queue {
        let origin: Origin
        var inFlight = 0
        var isReviewed = false
        private var waiting: [(Turn) -> Void] = []
        /// Those before it have begun.
        private var first = 0
        /// Begun ones are removed this many at a time.
        private static let most = 64

        init(_ origin: Origin) { self.origin = origin }

        var hasWaiting: Bool { first < waiting.count }
        func append(_ begin: @escaping (Turn) -> Void) { waiting.append(begin) }

        func removeFirst() -> (Turn) -> Void {
            let begin = waiting[first]
            waiting[first] = { _ in }
            first += 1
            if first == waiting.count || first == Self.most {
                waiting.removeFirst(first)
                first = 0
            }
            return begin
        }
    }

    private let limit: Int
    private let loop: EventLoop
    /// Those with requests in flight.
    private var queues: [ObjectIdentifier: Queue] = [:]

    /// - Parameter limit: connections to a server; less than 1 counts as 1.
    init(limit: Int, loop: EventLoop) {
        self.limit = max(limit, 1)
        self.loop = loop
    }

    /// Nil: `begin` is called later.
    func take(at origin: Origin, orLater begin: @escaping (Turn) -> Void) -> Turn? {
        let queue = queues[ObjectIdentifier(origin)] ?? Queue(origin)
        queues[ObjectIdentifier(origin)] = queue
        guard hasRoom(queue), !queue.hasWaiting else {
            queue.append(begin)
            return nil
        }
        return Turn(queue, of: self)
    }

    private func hasRoom(_ queue: Queue) -> Bool {
        queue.inFlight < limit || queue.origin.chosenProtocol == .http2
    }

    private func review(_ queue: Queue) {
        guard queue.hasWaiting else {
            if queue.inFlight == 0 { queues[ObjectIdentifier(queue.origin)] = nil }
            return
        }
        guard hasRoom(queue), !queue.isReviewed else { return }
        queue.isReviewed = true
        // A request may just be ending.
        loop.afterThisTurn { [self] in
            queue.isReviewed = false
            while queue.hasWaiting, hasRoom(queue) { queue.removeFirst()(Turn(queue, of: self)) }
        }
    }
}
