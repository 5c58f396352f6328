package import PinproxyHTTPWire

/// Properties of a request that its exchange needs, in any version of HTTP.
package struct RequestTraits: Sendable {
    package var method = Method.other
    /// The client understands interim responses (HTTP/1.1 and later, RFC 9110 section 15.2).
    package var takesInterim = true
    /// `Expect: 100-continue`: the body comes after a 100, or after the client's timeout.
    package var expectsContinue = false
    package var wantsUpgrade = false
    /// An extended CONNECT (RFC 8441): any 2xx would tell the client that the other protocol begins.
    package var needsUpgrade = false
    /// It came through another proxy, or this one.
    package var hasVia = false
    package var wantedPart = WantedPart.whole
    package var hasBody = false

    package init() {}

    /// A request made here, without interim responses.
    package init(madeHere head: RequestHead) {
        method = head.method
        wantedPart = head.wantedPart
        takesInterim = false
        hasBody = !head.bodyLength.isEmpty
    }
}

/// Properties of a response's head that its exchange needs, in any version of HTTP.
package struct ResponseTraits: Sendable {
    package let status: Int
    package let isInterim: Bool
    package let isUpgrade: Bool
    /// Bytes of the body, if declared.
    package let bodyLength: UInt64?
    /// The response is known to be completely received.
    package let isWhole: Bool
}

extension ResponseTraits {
    /// - Parameter isWhole: no body follows.
    init(_ head: ResponseHead, isWhole: Bool) {
        self.init(
            status: head.status, isInterim: head.isInterim, isUpgrade: head.isUpgrade,
            bodyLength: head.bodyLength.bytes,
            isWhole: isWhole)
    }

    /// - Parameter received: bytes after the head.
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
