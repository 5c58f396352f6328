package import HTTPWire
package import Transport

/// A request that is made here, whole in memory from the start.
package final class HeldRequest {
    package let message: OwnedRequest
    private let headLength: Int
    private let bodyLength: Int
    fileprivate var pipe: MessagePipe
    /// For ``Exchange/begin(_:to:by:over:)``.
    package let traits: RequestTraits

    package init(_ message: OwnedRequest, body: [UInt8] = [], slabs: SlabPool) {
        self.message = message
        let head = message.message
        headLength = head.count
        bodyLength = body.count
        pipe = MessagePipe(slabs: slabs)
        pipe.put(head)
        pipe.put(body)
        traits = RequestTraits(madeHere: message.head)
    }

    fileprivate func begin(head: inout [UInt8], replayLimit: Int) {
        let framing = bodyLength == 0 ? BodyFraming.none : .length(UInt64(bodyLength))
        pipe.begin(head: &head, inPlaceOf: headLength, framing: framing, replayLimit: replayLimit)
    }
}

/// A near door whose request is a ``HeldRequest``: that half of a ``Downstream``.
package protocol HoldsRequest: Downstream {
    var held: HeldRequest { get }
}

extension HoldsRequest {
    package func withRequest(_ body: (borrowing RequestView) -> Void) {
        // A copy in hand, since the view borrows from it.
        let message = held.message
        body(message.view)
    }

    package func beginRequest(head: inout [UInt8], replayLimit: Int) { held.begin(head: &head, replayLimit: replayLimit) }
    package func beginAgain(head: inout [UInt8], keepsBody: Bool) { held.pipe.beginAgain(head: &head, keepsBody: keepsBody) }
    package func withSentHead(_ body: (Span<UInt8>) -> Void) { held.pipe.withSentHead(body) }
    package func passRequest(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome { held.pipe.passOn(to: sink) }
    package var requestCarried: UInt64 { held.pipe.carried }
    package var canResendRequest: Bool { held.pipe.canRewind }
    package func rewindRequest() { held.pipe.rewind() }
    package func forgetReplay() { held.pipe.forgetReplay() }
    /// Nothing comes but what is there.
    package func wantsRead(_ wanted: Bool) {}
    package func receiveAhead() -> StreamError? { nil }
}
