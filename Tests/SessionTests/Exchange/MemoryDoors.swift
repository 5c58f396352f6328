import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxyTransport

@testable import PinproxySession

/// A downstream in memory: a request, and the response that arrived.
final class MemoryDownstream: Downstream, ExchangeGuide {
    let exchange: Exchange
    let body = PieceSource()
    let sink = BoundedSink()
    private let request: OwnedRequest
    private(set) var heads: [String] = []
    private(set) var ending: ExchangeEnding?
    private(set) var endings = 0
    private(set) var isRead = false
    var ruling = RedirectRuling.pass
    var isDeciding = false
    /// The statuses of heads that it was shown.
    private(set) var shown: [Int] = []

    private let takesInterim: Bool

    init(_ request: String, takesInterim: Bool = false, session: LoopSession) throws {
        self.takesInterim = takesInterim
        self.request = try OwnedRequest(Array((request + "\r\nHost: a.test\r\n\r\n").utf8))
        exchange = Exchange(session: session)
        exchange.downstream = self
    }

    func begin(to destination: Destination, by rules: ExchangeRules? = nil, over upstream: any Upstream) {
        var traits = RequestTraits(madeHere: request.head)
        traits.takesInterim = takesInterim
        exchange.begin(traits, to: destination, by: rules, over: upstream)
    }

    /// What arrived, head and body.
    var response: String { heads.joined() + String(decoding: sink.bytes, as: UTF8.self) }

    func withRequest(_ body: (borrowing RequestView) -> Void) {
        let request = request
        body(request.view)
    }

    lazy var requestBody: any BodySource = body
    func wantsRead(_ wanted: Bool) { isRead = wanted }

    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        heads.append("\(response.head.status) ")
        return sink
    }

    var guide: any ExchangeGuide { self }
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling { ruling }
    func received(_ response: borrowing ResponseView, from url: RequestURL) { shown.append(response.head.status) }

    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        TaskRecord.Refusal(status: 502, cause: failure.cause, errorType: "")
    }

    func exchangeEnded(_ ending: ExchangeEnding) {
        self.ending = ending
        endings += 1
    }
}

/// An upstream in memory: the test decides what it answers, and when.
final class MemoryUpstream: Upstream {
    var facts = UpstreamFacts()
    let sink = BoundedSink()
    private(set) var heads: [String] = []
    private(set) var ending: UpstreamEnding?
    /// How often a head was looked for, and how often more could be read for it.
    private(set) var looks = 0
    private(set) var reads = 0
    private var receiver: (any UpstreamReceiver)?
    private var progress: [ResponseHeadProgress] = []
    private var response: OwnedResponse?
    private var answers: [(OwnedResponse, PieceSource)] = []
    private var body = PieceSource()

    /// Answers with a head and its body.
    /// - Parameter isTold: whether the exchange is notified.
    func answer(_ head: String, _ body: PieceSource = .none, isTold: Bool = true) throws {
        answers.append((try OwnedResponse(Array((head + "\r\n\r\n").utf8)), body))
        if isTold { receiver?.upstreamIsReadable() }
    }

    func fails(_ failure: ResponseHeadProgress) {
        progress.append(failure)
        receiver?.upstreamIsReadable()
    }

    /// More of the response's body is there, or more space for the request's.
    func continues() {
        receiver?.upstreamIsReadable()
        receiver?.upstreamIsWritable()
    }

    func begin(for receiver: any UpstreamReceiver) { self.receiver = receiver }

    func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        heads.append(request.head.methodRange.text(in: request.bytes))
        return sink
    }

    /// Whether it would be notified of readable data.
    private(set) var isRead = true

    func wantsRead(_ wanted: Bool) { isRead = wanted }

    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress {
        looks += 1
        if readable { reads += 1 }
        if !progress.isEmpty { return progress.removeFirst() }
        guard !answers.isEmpty else { return .incomplete }
        let (head, body) = answers.removeFirst()
        receiver?.responseBegan()
        (response, self.body) = (head, body)
        return .complete(ResponseTraits(head.view.head, received: 0))
    }

    func withResponse(_ body: (borrowing ResponseView) -> Void) {
        guard let response else { return }
        body(response.view)
    }

    var responseBody: any BodySource { body }

    func end(_ ending: UpstreamEnding) -> HTTP1Upstream? {
        self.ending = ending
        receiver = nil
        return nil
    }
}

extension PieceSource {
    static var none: PieceSource { whole("") }

    static func whole(_ text: String) -> PieceSource {
        let source = PieceSource(Array(text.utf8))
        source.isEnded = true
        return source
    }
}
