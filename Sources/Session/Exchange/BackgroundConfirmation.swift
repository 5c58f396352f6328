import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

/// Asks an origin whether a stored response still holds, for no client in particular.
final class BackgroundConfirmation {
    private let use: CacheUse
    private let session: LoopSession
    let held = HeldBody()
    private let exchange: Exchange
    /// Reports connection attempts on behalf of the client that caused it.
    let report: AttemptReport
    private var selfWhileRunning: BackgroundConfirmation?
    private(set) var carried: UInt64 = 0

    init(_ use: CacheUse, session: LoopSession, report: @escaping AttemptReport) {
        self.use = use
        self.session = session
        self.report = report
        exchange = Exchange(session: session)
        exchange.downstream = self
    }

    /// - Parameter entry: the pattern of the matched entry.
    func start(to destination: Destination, by rules: ExchangeRules, entry: String?) {
        selfWhileRunning = self
        exchange.begin(
            request, number: session.takeNumber(), to: destination, by: rules, entry: entry, confirming: use)
    }
}

extension BackgroundConfirmation: ActsForClients {
    var request: OwnedRequest { use.asked }

    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink { self }

    var cacheOwner: CacheKey.Owner? { use.key.owner }
    func exchangeEnded(_ ending: ExchangeEnding) {
        switch ending {
        case .finished(let kept): kept?.close()
        case .switched(let upstream): _ = upstream.end(.abandoned)
        case .refused, .cut: break
        }
        session.cache.endConfirmation(of: use.key)
        selfWhileRunning = nil
    }
}

extension BackgroundConfirmation: BodySink {
    func write(_ piece: RawSpan) -> Int {
        carried += UInt64(piece.byteCount)
        return piece.byteCount
    }
}
