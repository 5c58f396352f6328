package import PinproxyCaching

/// The cache's result for an exchange: in the log, and as a metric's label.
package enum CacheResult: String, Sendable, CaseIterable {
    /// The origin wasn't asked.
    case hit
    case miss
    /// The origin confirmed the stored response.
    case revalidated
    /// A stale response, which the client or the origin allows.
    case stale
}

/// The cache's part in a response, for its head.
package struct CacheHandling: Sendable {
    package let result: CacheResult
    package let status: CacheStatus
    /// Seconds; nil: it came from the origin.
    package let age: Int64?
}
