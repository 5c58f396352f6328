/// How many received bytes of a body were consumed, and kept.
package enum BodyProgress: Sendable, Equatable {
    /// The first `consumed` bytes were taken; the first `kept` bytes now hold what to pass on. Bytes after `consumed`
    /// belong to the next message once `ended`, or are an incomplete line: pass them again with more.
    case passed(kept: Int, consumed: Int, ended: Bool)
    /// The body breaks its framing; bytes before `consumed` were still valid.
    case malformed(WireError, kept: Int, consumed: Int)
}
