/// What became of the bytes of a body that had arrived.
package enum BodyProgress: Sendable, Equatable {
    /// The first `consumed` bytes were taken, and what is to be passed on of them now stands in the first
    /// `kept`. Those after `consumed` stay where they are: once the message has `ended` they belong to the
    /// next one; until then they begin a line that isn't whole, and are to be given again, with those that follow.
    case passed(kept: Int, consumed: Int, ended: Bool)
    /// The body breaks its framing; what is before `consumed` was still in order.
    case malformed(WireError, kept: Int, consumed: Int)
}
