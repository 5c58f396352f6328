/// How many arrived bytes of a body were taken, and kept.
package enum BodyProgress: Sendable, Equatable {
    /// The first `consumed` bytes were taken; the first `kept` now hold what is to be passed on. The rest is the next
    /// message once `ended`, or an incomplete line to be given again with more.
    case passed(kept: Int, consumed: Int, ended: Bool)
    /// The body breaks its framing; what is before `consumed` was still in order.
    case malformed(WireError, kept: Int, consumed: Int)
}
