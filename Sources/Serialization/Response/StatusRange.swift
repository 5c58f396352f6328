/// The status codes that a response may have: one (`304`), or a range (`200-299`).
public struct StatusRange: Sendable, Hashable, CustomStringConvertible {
    /// The status codes, within 100...599.
    public let codes: ClosedRange<Int>

    /// 200–299, which AFNetworking's serializers accept.
    public static let success = StatusRange(200...299)

    /// - Precondition: the codes are within 100...599.
    public init(_ codes: ClosedRange<Int>) {
        precondition(codes.lowerBound >= 100 && codes.upperBound <= 599)
        self.codes = codes
    }

    /// Parses text such as `200-299`.
    public init(_ text: String) throws(InvalidValue) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let codes = parts.compactMap { part in
            part.utf8.count == 3 && part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(part) : nil
        }
        guard codes.count == parts.count, let first = codes.first, let last = codes.last, codes.count <= 2 else {
            throw InvalidValue("\"\(text)\" is not a status; write one, as 304, or a range, as 200-299")
        }
        guard first >= 100, last <= 599 else {
            throw InvalidValue("\(text) is out of range; status codes are from 100 to 599")
        }
        guard first <= last else { throw InvalidValue("\(text) is empty; write the smaller status first") }
        self.codes = first...last
    }

    public var description: String {
        codes.count == 1 ? "\(codes.lowerBound)" : "\(codes.lowerBound)-\(codes.upperBound)"
    }
}
