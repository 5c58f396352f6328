import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

/// The upstream side of an exchange that a stored response answers.
final class StoredUpstream: Upstream {
    private let served: ServedResponse
    private let session: LoopSession
    // unowned: the receiver keeps its upstream from begin(for:) to end(_:), which clears it.
    // unchecked, as below: each is stored whole.
    @exclusivity(unchecked) private unowned var receiver: (any UpstreamReceiver)?
    private var isTold = false
    private var isCalling = false
    private var wantsCall = false
    let facts: UpstreamFacts
    private(set) lazy var responseBody = served.source(on: session.loop) { { [weak self] in self?.call() } }

    init(_ served: ServedResponse, _ handling: CacheHandling, from scope: AddressScope?, session: LoopSession) {
        self.served = served
        self.session = session
        facts = UpstreamFacts(scope: scope, cache: handling)
    }

    func begin(for receiver: any UpstreamReceiver) { self.receiver = receiver }

    /// The request isn't sent.
    func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        wantsRead(true)
        return Discard()
    }

    func wantsRead(_ wanted: Bool) {
        wantsCall = wanted
        if wanted { call() }
    }

    /// Calls the exchange, as a readable socket would.
    private func call() {
        guard wantsCall, !isCalling else { return }
        isCalling = true
        session.loop.afterThisTurn { [self] in
            isCalling = false
            if wantsCall { receiver?.upstreamIsReadable() }
        }
    }

    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress {
        guard !isTold else { return .incomplete }
        isTold = true
        receiver?.responseBegan()
        return .complete(served.traits)
    }

    func withResponse(_ body: (borrowing ResponseView) -> Void) {
        // A copy, since the view borrows from it.
        let head = served.head
        body(head.view)
    }

    func end(_ ending: UpstreamEnding) -> HTTP1Upstream? {
        receiver = nil
        return nil
    }
}
