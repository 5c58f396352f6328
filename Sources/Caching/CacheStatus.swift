/// The Cache-Status field: how a cache handled a request (RFC 9211).
package struct CacheStatus: Sendable, Equatable {
    package var answer: CacheAnswer
    /// Seconds for which the response is still fresh; negative: stale for so long.
    package var rest: Int64?
    /// What the origin answered.
    package var forwardStatus: Int?
    package var isStored = false
    /// The request waited for another request's response.
    package var isCollapsed = false

    package init(_ answer: CacheAnswer) { self.answer = answer }

    /// As a list's member. What belongs to a forwarded request is left out of a hit (RFC 9211 sections 2.3 to 2.6).
    package var text: String {
        var text = "pinproxy"
        var isForwarded = false
        switch answer {
        case .fresh, .stale: text += "; hit"
        case .ask(let reason):
            isForwarded = true
            text += "; fwd=\(reason.rawValue)"
        case .unavailable: text += "; detail=only-if-cached"
        }
        if let rest { text += "; ttl=\(rest)" }
        guard isForwarded else { return text }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        return text
    }
}
