import EventLoop
import HTTPWire
import Transport

/// The far door of an exchange that shares the response to another's request.
final class SharedUpstream {
    private let session: LoopSession
    private var fetch: SharedFetch?
    private var number = 0
    private unowned var receiver: (any UpstreamReceiver)?
    /// What was told and not taken, the oldest first.
    private var news: [SharedFetch.News] = []
    private var next = 0
    private var wantsNews = false
    private var isCalling = false
    /// What the exchange asked for.
    private let request: OwnedRequest
    private var response: OwnedResponse?
    private var framing = BodyFraming.none
    /// The response as it goes on to the client.
    private var pipe: MessagePipe
    private var swallowed = Swallow()

    init(_ request: OwnedRequest, session: LoopSession) {
        self.session = session
        self.request = request
        pipe = MessagePipe(slabs: session.slabs)
    }

    /// Joins the request in flight, or makes it.
    func join(_ fetches: SharedFetches, _ place: SharedFetches.Place, report: @escaping AttemptReport) {
        let (fetch, number, isNew) = fetches.join(
            place.key, as: SharedFetch.Reader(self, on: session.loop), task: session.takeNumber())
        self.fetch = fetch
        self.number = number
        guard isNew else { return }
        let runner = FetchRunner(request, for: fetch, session: session, report: report) { [key = place.key] in
            fetches.close(key, fetch)
        }
        runner.start(to: place.destination, by: place.rules, entry: place.entry)
    }

    /// The number of the task that runs the request.
    var task: UInt64? { fetch?.task }

    /// From the one who runs the fetch.
    func received(_ fresh: [SharedFetch.News]) {
        guard fetch != nil else { return }
        news += fresh
        call()
    }

    /// Calls the exchange as a readable socket would.
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

    private func take() -> SharedFetch.News? {
        guard hasNews else { return nil }
        defer {
            next += 1
            if next == news.count {
                news.removeAll(keepingCapacity: true)
                next = 0
            }
        }
        return news[next]
    }

    private func leave() {
        receiver = nil
        fetch?.leave(number)
        fetch = nil
        news = []
        next = 0
    }

    /// Where the request goes, which isn't sent.
    private final class Swallow: ByteSink {
        func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
            buffer.consume(count)
            return .done
        }
    }
}

extension SharedUpstream: Upstream {
    var isReused: Bool { false }
    func begin(for receiver: any UpstreamReceiver) { self.receiver = receiver }

    var sink: any ByteSink { swallowed }

    func writeHead(
        of request: borrowing RequestView, to destination: Destination, via: ViaPseudonym?, edits: HeadEdits,
        into head: inout [UInt8]
    ) {
        // By this the rest can be asked for, should this one be left behind.
        HeadWriter.write(
            request: request.head, from: request.bytes, target: .originForm, authority: destination.authority,
            defaultPort: destination.defaultPort, via: via, forwardUpgrade: false, edits: edits, into: &head)
    }

    func wantsRead(_ wanted: Bool) {
        wantsNews = wanted
        call()
    }

    var holdsBytes: Bool { false }

    func receiveHead(of method: Method, limit: Int, began: () -> Void) -> ResponseHeadProgress {
        switch take() {
        case nil: return .incomplete
        case .head(let response, let asked)?:
            guard request.agrees(with: asked, in: response) else { return .notShared }
            began()
            self.response = response
            let head = response.view.head
            framing = head.framing
            let length: UInt64? = if case .length(let length) = framing { length } else { nil }
            return .complete(
                ResponseTraits(status: head.status, isInterim: false, isUpgrade: false, bodyLength: length))
        case .failed(let failure)?: return .failed(failure)
        case .broke(let cause)?: return .ended(cause)
        case .notShared?, .leftBehind?, .body?, .ended?: return .notShared
        }
    }

    func nextHead(of method: Method) -> ResponseHeadProgress { .incomplete }

    func withResponse(_ body: (borrowing ResponseView) -> Void) {
        guard let response else { return }
        body(response.view)
    }

    func dropHead() {}

    func beginResponse(head: inout [UInt8], _ kind: ResponseKind, coding: ResponseCoding) {
        pipe.begin(head: &head, inPlaceOf: 0, framing: framing, chunks: coding == .chunked)
    }

    func passResponse(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome {
        while true {
            let outcome = pipe.passOn(to: sink)
            guard case .waiting = outcome else { return outcome }
            switch take() {
            case nil:
                pipe.rest()
                return .waiting
            case .body(let bytes)?:
                pipe.put(bytes)
                fetch?.took(bytes.count, by: number)
            case .ended?: if !pipe.endPut() { return .truncated }
            case .broke?, .failed?, .notShared?, .leftBehind?, .head?: return .truncated
            }
        }
    }

    var hasWholeResponse: Bool { framing == .none }
    var hasPassedAll: Bool { pipe.isDrained && !hasNews }
    var responseCarried: UInt64 { pipe.carried }

    func finish(requestSent: Bool, idleNanoseconds: UInt64) -> UpstreamConnection? {
        leave()
        return nil
    }

    func abandon() { leave() }

    func surrender() -> UpstreamConnection { preconditionFailure("a response that is shared changes no protocol") }
}
