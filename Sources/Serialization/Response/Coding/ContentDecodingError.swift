/// Why the content codings of a body can't be decoded.
public enum ContentDecodingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A coding that isn't known, by its name.
    case unknownCoding(String)
    /// There are more nested codings than are decoded.
    case tooManyCodings(limit: Int)
    /// - offset: the bytes of the coding that were read when it was noticed.
    case malformed(coding: String, offset: Int, explanation: String)
    /// The body ends before the coding does.
    case truncated(coding: String)
    /// The coding ends before the body does.
    case trailingBytes(coding: String, offset: Int)
    /// A second gzip member follows: recipients don't agree whether it belongs to the body.
    case secondMember(offset: Int)
    /// The decoded body is longer than allowed.
    case tooLong(limit: Int)
    /// A bomb: so much comes out of so little.
    case tooDense(coding: String, limit: Int)

    public var description: String {
        switch self {
        case .unknownCoding(let name): "the content coding \(name) is not known"
        case .tooManyCodings(let limit): "more than \(limit) content codings are listed"
        case .malformed(let coding, let offset, let explanation): "\(coding) is wrong at byte \(offset): \(explanation)"
        case .truncated(let coding): "\(coding) is cut off: the body ends before it does"
        case .trailingBytes(let coding, let offset): "\(coding) ends at byte \(offset), and the body does not"
        case .secondMember(let offset):
            "a second gzip member begins at byte \(offset); recipients don't agree whether it belongs to the body"
        case .tooLong(let limit): "it is longer than \(limit) bytes when decoded"
        case .tooDense(let coding, let limit): "\(coding) expands more than \(limit) times, as bombs do"
        }
    }
}
