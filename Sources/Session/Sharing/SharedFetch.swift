import PinproxyHTTPWire
import PinproxyTransport
import Synchronization

/// One request in flight, and the readers of its response, each on its own loop at its own speed. The origin is read as
/// fast as the fastest reader; one too far behind continues alone. With the budget for bodies spent, nothing is kept:
/// nobody can join, and the fastest gets piece after piece.
final class SharedFetch: Sendable {
    /// Bytes of a body kept for later readers.
    static let keptForLatecomers = 1 << 20
    /// Bytes that a reader may lag. Shared pieces are in memory once.
    static let slack = 4 << 20
    /// Bytes that the fastest reader may lag before the origin must wait.
    static let ahead = 256 << 10

    /// Delivered to readers in this order: a head, the body's pieces, an end.
    enum News: Sendable {
        /// Without transfer coding, with the request that it answers, and the origin's scope.
        case head(OwnedResponse, of: OwnedRequest, from: AddressScope?)
        case body(Piece)
        case ended(TrailerSection)
        case failed(ExchangeFailure)
        /// Interrupted, with a human-readable reason.
        case broke(String)
        /// The response is for the first reader only.
        case notShared
        /// The reader lags too far.
        case leftBehind
    }

    /// Bytes of the body, shared by all readers.
    struct Piece: Sendable {
        let bytes: [UInt8]
        /// Nil where the budget is spent.
        fileprivate let reservation: BodyReservation?
    }

    struct Reader: Sendable {
        /// Called on any thread.
        fileprivate let tell: @Sendable ([News]) -> Void
        fileprivate var number = 0
        fileprivate static let first = 1
        /// Bytes delivered and not yet taken.
        fileprivate var behind = 0

        init(tell: @escaping @Sendable ([News]) -> Void) { self.tell = tell }
    }

    fileprivate struct State {
        var readers: [Reader] = []
        var lastNumber = 0
        /// Everything from the head on; empty once no request can join.
        var kept: [News] = []
        var keptBytes = 0
        var isJoinable = true
        var keepsNothing = false
        /// The origin waits for the readers.
        var isPaused = false
        /// The runner's, on its loop.
        var wake: (@Sendable () -> Void)?
        var cancel: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    let task: UInt64

    init(task: UInt64) { self.task = task }

    /// - Parameters:
    ///   - wake: called on any thread when more may be read from the origin.
    ///   - cancel: called on any thread when the last reader left.
    func run(wake: @escaping @Sendable () -> Void, cancel: @escaping @Sendable () -> Void) {
        state.withLock {
            $0.wake = wake
            $0.cancel = cancel
        }
    }

    // MARK: Readers

    /// - Returns: the reader's number; nil: too late to join.
    func join(_ reader: Reader) -> Int? {
        state.withLock { state in
            guard state.isJoinable else { return nil }
            state.lastNumber += 1
            var reader = reader
            reader.number = state.lastNumber
            reader.behind = state.keptBytes
            state.readers.append(reader)
            if !state.kept.isEmpty { reader.tell(state.kept) }
            return reader.number
        }
    }

    func leave(_ number: Int) {
        let cancel = state.withLock { state -> (@Sendable () -> Void)? in
            guard let index = state.readers.firstIndex(where: { $0.number == number }) else { return nil }
            state.readers.remove(at: index)
            if state.readers.isEmpty {
                state.isJoinable = false
                return state.cancel
            }
            return state.takeWake()
        }
        cancel?()
    }

    func took(_ count: Int, by number: Int) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            guard let index = state.readers.firstIndex(where: { $0.number == number }) else { return nil }
            state.readers[index].behind -= count
            return state.takeWake()
        }
        wake?()
    }

    // MARK: The runner

    /// Makes a piece for ``tell(_:)``; nil: the bytes wait for `wake` of ``run(wake:cancel:)``.
    func piece(of bytes: RawSpan, from budget: BodyBudget) -> Piece? {
        let bytes = [UInt8](copying: bytes)
        return state.withLock { state in
            guard state.mayGoOn() else { return nil }
            if !state.keepsNothing {
                if let reservation = BodyReservation(of: budget, for: .shared, bytes: bytes.count) {
                    return Piece(bytes: bytes, reservation: reservation)
                }
                state.keepNothing()
                guard state.mayGoOn() else { return nil }
            }
            state.leaveBehind { $0.behind > 0 }
            return Piece(bytes: bytes, reservation: nil)
        }
    }

    func tell(_ news: News) {
        state.withLock { state in
            state.keep(news)
            if case .body(let piece) = news {
                state.leaveBehind { $0.behind > SharedFetch.slack }
                for index in state.readers.indices { state.readers[index].behind += piece.bytes.count }
            }
            for reader in state.readers { reader.tell([news]) }
        }
    }

    /// Restricts the response to the first reader, or to none if that one left.
    func keepToOne() {
        let cancel = state.withLock { state -> (@Sendable () -> Void)? in
            state.isJoinable = false
            for reader in state.readers where reader.number != Reader.first { reader.tell([.notShared]) }
            state.readers.removeAll { $0.number != Reader.first }
            return state.readers.isEmpty ? state.cancel : nil
        }
        cancel?()
    }

    func close() {
        state.withLock { state in
            state.isJoinable = false
            state.kept = []
        }
    }

    /// Ends the fetch. The runner is no longer called.
    func end() {
        state.withLock { state in
            state.isJoinable = false
            state.kept = []
            state.wake = nil
            state.cancel = nil
        }
    }

    var isJoinable: Bool { state.withLock { $0.isJoinable } }
}

extension SharedFetch.State {
    fileprivate var fastest: Int { readers.lazy.map(\.behind).min() ?? 0 }

    /// Whether more may be read from the origin; if not, that is noted.
    fileprivate mutating func mayGoOn() -> Bool {
        isPaused = fastest >= (keepsNothing ? 1 : SharedFetch.ahead)
        return !isPaused
    }

    fileprivate mutating func takeWake() -> (@Sendable () -> Void)? {
        guard isPaused, fastest < (keepsNothing ? 1 : SharedFetch.ahead / 2) else { return nil }
        isPaused = false
        return wake
    }

    fileprivate mutating func keepNothing() {
        keepsNothing = true
        isJoinable = false
        kept = []
    }

    fileprivate mutating func leaveBehind(where isTooFar: (SharedFetch.Reader) -> Bool) {
        for reader in readers where isTooFar(reader) { reader.tell([.leftBehind]) }
        readers.removeAll(where: isTooFar)
    }

    fileprivate mutating func keep(_ news: SharedFetch.News) {
        guard isJoinable else { return }
        switch news {
        case .head: kept.append(news)
        case .body(let piece) where keptBytes + piece.bytes.count <= SharedFetch.keptForLatecomers:
            kept.append(news)
            keptBytes += piece.bytes.count
        case .body, .ended, .failed, .broke, .notShared, .leftBehind:
            isJoinable = false
            kept = []
        }
    }
}
