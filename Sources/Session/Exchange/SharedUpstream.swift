import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

/// The upstream side of an exchange that shares an equal request's response.
final class SharedUpstream {
    private let session: LoopSession
    private var fetch: SharedFetch?
    private var number = 0
    private weak var receiver: (any UpstreamReceiver)?
    /// News so far, oldest first; nil once taken.
    private var news: [SharedFetch.News?] = []
    private var next = 0
    private var wantsNews = false
    private var isCalling = false
    private let request: OwnedRequest
    private let place: SharedFetches.Place
    private let report: AttemptReport
    private var response: OwnedResponse?
    private var scope: AddressScope?
    private var prefix: BodyPrefix?
    private var search: PrefixSearch?
    /// The piece being passed on, with its reservation.
    private var piece = PassingBytes()
    private var shared: SharedFetch.Piece?
    private(set) var moved: UInt64 = 0
    private var ending: TrailerSection?
    private var truncation = "the origin ended in the middle of the response"

    init(_ request: OwnedRequest, to place: SharedFetches.Place, session: LoopSession, report: @escaping AttemptReport)
    {
        self.session = session
        self.request = request
        self.place = place
        self.report = report
    }

    /// - Returns: whether the fetch begins here.
    func join(_ fetches: SharedFetches) -> Bool {
        let (fetch, number, isNew) = fetches.join(
            place.key, as: reader, task: session.takeNumber())
        self.fetch = fetch
        self.number = number
        if isNew { run(fetch) { [key = place.key] in fetches.close(key, fetch) } }
        return isNew
    }

    /// Sends its own request, as the others are too far ahead. True if that is allowed.
    private func proceedAlone() -> Bool {
        // As for the exchange's own tries, the policy in force applies.
        guard !place.destination.origin.isRetired else {
            truncation = "the configuration has changed since the response began"
            return false
        }
        search = prefix.take()?.search()
        let fetch = SharedFetch(task: session.takeNumber())
        self.fetch = fetch
        number = fetch.join(reader) ?? 0
        fetch.close()
        run(fetch) {}
        return true
    }

    private var reader: SharedFetch.Reader {
        let (handle, upstream) = (session.loop.handle, LoopBound(self, on: session.loop))
        return SharedFetch.Reader { news in handle.post { upstream.value(on: $0).received(news) } }
    }

    private func run(_ fetch: SharedFetch, closed: @escaping () -> Void) {
        let runner = FetchRunner(request, for: fetch, session: session, report: report, closed: closed)
        runner.start(to: place.destination, by: place.rules, entry: place.entry)
    }

    var task: UInt64? { fetch?.task }

    /// Called by the fetch's runner.
    func received(_ fresh: [SharedFetch.News]) {
        guard fetch != nil else { return }
        news += fresh
        call()
    }

    /// Calls the exchange, as a readable socket would.
    private func call() {
        guard wantsNews, hasNews, !isCalling else { return }
        isCalling = true
        session.loop.afterThisTurn { [weak self] in
            guard let self else { return }
            isCalling = false
            if wantsNews, hasNews { receiver?.upstreamIsReadable() }
        }
    }

    private var hasNews: Bool { next < news.count }

    /// Taken entries still in the list.
    private static let mostTaken = 64

    private func take() -> SharedFetch.News? {
        guard hasNews else { return nil }
        // Releases the piece's memory at once, even if the list never empties.
        let taken = news[next].take()
        next += 1
        if next == news.count || next >= Self.mostTaken {
            news.removeFirst(next)
            next = 0
        }
        return taken
    }

    private func leave() {
        receiver = nil
        fetch?.leave(number)
        fetch = nil
        news = []
        next = 0
    }
}

extension SharedUpstream: Upstream {
    var facts: UpstreamFacts { UpstreamFacts(scope: scope) }
    func begin(for receiver: any UpstreamReceiver) { self.receiver = receiver }

    /// The request isn't sent: the runner sends it.
    func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        wantsRead(true)
        return Discard()
    }

    func wantsRead(_ wanted: Bool) {
        wantsNews = wanted
        call()
    }

    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress {
        switch take() {
        case nil: return .incomplete
        case .head(let response, let asked, let scope)?:
            self.scope = scope
            guard request.agrees(with: asked, in: response) else { return .notShared }
            receiver?.responseBegan()
            self.response = response
            if !isContinuedByItsExchange(response) { prefix = BodyPrefix(of: response) }
            return .complete(ResponseTraits(response.view.head, received: 0))
        case .failed(let failure)?: return .failed(failure)
        case .broke(let cause)?: return .ended(cause)
        case .notShared?, .leftBehind?, .body?, .ended?: return .notShared
        }
    }

    func withResponse(_ body: (borrowing ResponseView) -> Void) {
        guard let response else { return }
        body(response.view)
    }

    var responseBody: any BodySource { self }

    func end(_ ending: UpstreamEnding) -> HTTP1Upstream? {
        leave()
        return nil
    }
}

extension SharedUpstream: BodySource {
    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        while true {
            do throws(StreamError) {
                let count = try piece.write(to: sink)
                piece.advance(by: count)
                moved += UInt64(count)
                guard piece.isPassed else { return .blocked }
                piece = PassingBytes()
                shared = nil
                if let ending { return try sink.end(ending) ? .ended : .blocked }
            } catch {
                return .sinkFailed(error)
            }
            guard let news = take() else { return .waiting }
            guard pass(news) else { return .truncated(truncation) }
        }
    }

    /// - Returns: false: nothing follows, and the response is incomplete.
    private func pass(_ news: SharedFetch.News) -> Bool {
        switch news {
        case .body(let shared):
            let bytes = shared.bytes
            prefix?.append(bytes)
            fetch?.took(bytes.count, by: number)
            guard let rest = search == nil ? bytes : search?.rest(of: bytes) else { return lost() }
            piece = PassingBytes(rest)
            self.shared = shared
            return true
        case .head(let other, _, _): return search?.agrees(with: other) == true || lost()
        case .ended(let trailers):
            guard search?.isOver != false else { return lost() }
            ending = trailers
            return true
        case .leftBehind where prefix != nil: return proceedAlone()
        case .leftBehind: truncation = "the client was too slow for the others that shared the response"
        case .broke(let cause): truncation = cause
        case .failed(let failure): truncation = failure.cause
        case .notShared: break
        }
        return false
    }

    /// The search failed.
    private func lost() -> Bool {
        truncation =
            "the client was too slow for the others that shared the response, and the origin's next one is another"
        return false
    }

    /// Whether a break is repaired by range requests instead (`session.resume`).
    private func isContinuedByItsExchange(_ response: OwnedResponse) -> Bool {
        let view = response.view
        guard case .known = view.head.bodyLength, view.head.status == 200 else { return false }
        return place.rules.session.resume && Resumption.isPossible(view)
    }
}
