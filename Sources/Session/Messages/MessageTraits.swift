package import HTTPWire

/// What an exchange has to know of its request, whatever version of HTTP it came in.
package struct RequestTraits: Sendable {
    package var method = Method.other
    /// Interim responses are understood (HTTP/1.1 and later, RFC 9110 section 15.2).
    package var takesInterim = true
    /// `Expect: 100-continue`: the body comes after a 100, or after the client has lost its patience.
    package var expectsContinue = false
    /// It asks for another protocol.
    package var wantsUpgrade = false
    /// It has passed another proxy, or this one.
    package var hasVia = false
    package var wantedPart = WantedPart.whole
    package var hasBody = false

    package init() {}

    /// A request made here: interim responses are dropped.
    package init(madeHere head: RequestHead) {
        method = head.method
        wantedPart = head.wantedPart
        takesInterim = false
        hasBody = !head.bodyLength.isEmpty
    }
}

/// What an exchange has to know of a response's head, whatever version of HTTP it came in.
package struct ResponseTraits: Sendable {
    package let status: Int
    package let isInterim: Bool
    package let isUpgrade: Bool
    /// Bytes of the body, where the head says.
    package let bodyLength: UInt64?
    /// The response is known to have been received to its last byte.
    package let isWhole: Bool
}

extension ResponseTraits {
    /// - Parameter received: bytes that follow the head already.
    init(_ head: ResponseHead, received: Int) {
        let length = head.bodyLength.bytes
        self.init(
            status: head.status, isInterim: head.isInterim, isUpgrade: head.isUpgrade, bodyLength: length,
            isWhole: length.map { UInt64(received) >= $0 } ?? (head.bodyLength == .none))
    }
}

package enum ResponseKind: Sendable {
    /// 1xx: another follows.
    case interim
    case final
    case upgrade
}
