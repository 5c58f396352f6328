import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

/// Runs a ``SharedFetch`` on the first client's loop, as long as it has readers.
final class FetchRunner {
    private let fetch: SharedFetch
    private let session: LoopSession
    let request: OwnedRequest
    let held = HeldBody()
    private(set) var carried: UInt64 = 0
    private var trailers = TrailerSection()
    private let exchange: Exchange
    /// Reports connection attempts on behalf of the first client.
    let report: AttemptReport
    private let closed: () -> Void
    /// Keeps itself alive while running: its readers are on other loops.
    private var selfWhileRunning: FetchRunner?

    /// - Parameter closed: called when no request can join any more, perhaps repeatedly.
    init(
        _ request: OwnedRequest, for fetch: SharedFetch, session: LoopSession, report: @escaping AttemptReport,
        closed: @escaping () -> Void
    ) {
        self.request = request
        self.fetch = fetch
        self.session = session
        self.report = report
        self.closed = closed
        exchange = Exchange(session: session)
        exchange.downstream = self
    }

    /// - Parameter entry: the pattern of the matched entry.
    func start(to destination: Destination, by rules: ExchangeRules, entry: String?) {
        selfWhileRunning = self
        let runner = LoopBound(self, on: session.loop)
        let handle = session.loop.handle
        fetch.run(
            wake: { handle.post { runner.value(on: $0).exchange.downstreamIsWritable() } },
            cancel: { handle.post { runner.value(on: $0).exchange.cancel("no reader is left") } })
        exchange.begin(request, number: fetch.task, to: destination, by: rules, entry: entry)
    }
}

extension FetchRunner: ActsForClients {
    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        guard let shared = OwnedResponse(response).withoutTransferCoding() else { return self }
        if !shared.isForEverybody {
            fetch.keepToOne()
            closed()
        }
        fetch.tell(.head(shared, of: request, from: exchange.upstream?.facts.scope))
        return self
    }

    func exchangeEnded(_ ending: ExchangeEnding) {
        switch ending {
        case .finished(let kept):
            kept?.close()
            fetch.tell(.ended(trailers))
        case .refused(let failure, _): fetch.tell(.failed(failure))
        case .cut: fetch.tell(.broke(exchange.record.failure ?? "the response was interrupted"))
        case .switched(let upstream): _ = upstream.end(.abandoned)
        }
        fetch.end()
        closed()
        selfWhileRunning = nil
    }
}

extension FetchRunner: BodySink {
    func write(_ piece: RawSpan) -> Int {
        guard let shared = fetch.piece(of: piece, from: session.slabs.budget) else { return 0 }
        fetch.tell(.body(shared))
        carried += UInt64(piece.byteCount)
        if !fetch.isJoinable { closed() }
        return piece.byteCount
    }

    func end(_ trailers: TrailerSection) -> Bool {
        self.trailers = trailers
        return true
    }
}
