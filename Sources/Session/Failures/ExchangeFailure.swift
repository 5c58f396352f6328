package import PinproxyHTTPWire
package import PinproxySerialization

/// Why there is no response.
package enum ExchangeFailure: Error {
    // The client.
    case badRequest(WireError)
    case requestStalled(after: Duration)
    case requestDripped(MinimumRate)
    indirect case requestBroke(RequestSerializationError)
    /// The program that produces the body failed, with a human-readable reason.
    case uploadFailed(String)
    // The origin, or the path to it.
    case unreachable(UpstreamFailure)
    case upstreamClosed(String)
    /// The origin reads the request's body too slowly.
    case requestTakenSlowly(MinimumRate)
    case badResponse(WireError)
    case responseHeadTooLarge(Int)
    case tooManyResponseFields
    case unaskedUpgrade
    case noResponse(after: Duration)
    /// The body was interrupted before the rules could judge it.
    case bodyBroke(String)
    /// No byte of a response that had begun.
    case nothingMoved(after: Duration)
    case redirect(RedirectDefect)
    /// No suitable response is stored, and the client accepts nothing else (RFC 9111 section 5.2.1.7).
    case notStored
    // The rules.
    /// - Parameter source: the rule, and where it is written.
    indirect case unacceptable(ResponseSerializationError, source: String?)
    /// No turn (`session.max_active`) in time, with a human-readable reason.
    case notAdmitted(String)
    case notJudged(BodyWorkFailure)
    /// The downstream closed or failed, with a human-readable reason.
    case downstreamGone(String)
    /// Cancelled, with a human-readable account of by whom.
    case cancelled(String)

    /// One line for the log, when it is too late for a refusal.
    package var cause: String {
        switch self {
        case .badRequest(let error), .badResponse(let error): error.message
        case .requestBroke(let error): error.description
        case .requestStalled(let time): "the request did not arrive within \(time)"
        case .requestDripped(let rate): "the client sent less of the request than \(rate)"
        case .requestTakenSlowly(let rate): "the origin took less of the request than \(rate)"
        case .unreachable(let failure): "\(failure)"
        case .upstreamClosed(let cause): "the origin \(cause) before it answered"
        case .responseHeadTooLarge(let limit):
            "the response's head is longer than \(limit) bytes (limits.response_head)"
        case .tooManyResponseFields: "the response has too many header fields"
        case .unaskedUpgrade: "unrequested 101 Switching Protocols"
        case .bodyBroke(let cause), .uploadFailed(let cause): cause
        case .nothingMoved(let time): "nothing moved for \(time)"
        case .unacceptable(let error, _): error.description
        case .notAdmitted(let cause): cause
        case .notStored: "no usable response is stored, and the client accepts no other (only-if-cached)"
        case .redirect(let defect): defect.description
        case .notJudged(let failure): "the body couldn't be judged: \(failure.cause)"
        case .noResponse(let time): "no response within \(time) (timeouts.first_byte)"
        case .cancelled(let cause): cause
        case .downstreamGone(let why): "client: \(why)"
        }
    }
}
