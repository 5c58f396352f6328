import Testing

/// The expected result of a CONNECT: the last column in the tables of pins and chains.
enum Expected: Sendable, CustomStringConvertible {
    case accepted
    /// The status, and words that the reason phrase, Proxy-Status or the body must contain.
    case refused(Int, String)

    var description: String {
        switch self {
        case .accepted: "accepted"
        case .refused(let status, let words): "refused with \(status) \(words)"
        }
    }

    /// Checks the answer and, of a refusal, its form: host in the reason phrase, Proxy-Status, a
    /// body that programs can read.
    func check(_ answer: RawResponse, host: String, sourceLocation: SourceLocation = #_sourceLocation) {
        switch self {
        case .accepted:
            #expect(answer.status == 200, "\(answer)", sourceLocation: sourceLocation)
        case .refused(let status, let words):
            #expect(answer.status == status, "\(answer)", sourceLocation: sourceLocation)
            #expect(
                answer.description.lowercased().contains(words.lowercased()), "\(answer)",
                sourceLocation: sourceLocation)
            #expect(answer.reason.contains(host), "\(answer)", sourceLocation: sourceLocation)
            #expect(
                answer["Proxy-Status"]?.hasPrefix("pinproxy; error=") == true, "\(answer)",
                sourceLocation: sourceLocation)
            #expect(
                answer["Content-Type"] == "application/problem+json", "\(answer)",
                sourceLocation: sourceLocation)
        }
    }
}
