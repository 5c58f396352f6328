/// Reads JSON: AFJSONResponseSerializer. The value keeps the order of names and the digits of numbers; the last of a
/// repeated name counts.
///
/// A body that is empty or a single space, as Rails answers `head :ok`, has no value and is not an error.
///
/// Before it makes a value, one pass validates the text and says where it is wrong, which JSONSerialization doesn't.
/// It accepts what JSONSerialization accepts: any value of RFC 8259 (AFNetworking's default options require an object
/// or an array), repeated names, UTF-8 with or without a byte order mark, UTF-16, UTF-32; not NaN, 1e400, a lone
/// surrogate, or nesting of more than 512. A comma before the end of an array or object is refused, since it isn't
/// JSON. JSONSerialization accepts it on Linux.
public struct JSONResponseSerializer: ResponseSerializer {
    /// The content types of AFNetworking.
    public static let contentTypes = [MediaRange].known("application/json", "text/json", "text/javascript")

    public var format: String { "JSON" }
    /// The accepted statuses; 2xx by default.
    public var acceptableStatuses: [StatusRange] = [.success]
    public var acceptableContentTypes: [MediaRange]? = Self.contentTypes
    /// Whether null members and elements are removed at any depth.
    public var removesNullValues: Bool

    /// - Parameter removesNullValues: see ``removesNullValues``.
    public init(removesNullValues: Bool = false) { self.removesNullValues = removesNullValues }

    public func value(ofBody body: [UInt8]) throws(BodyDefect) -> ParameterValue? {
        guard !Self.isWithoutValue(body) else { return nil }
        return try Self.read(body, makesValue: true, removesNulls: removesNullValues).value
    }

    public func check(body: [UInt8]) throws(BodyDefect) {
        guard !Self.isWithoutValue(body) else { return }
        _ = try Self.read(body)
    }

    /// Cuts null members and elements out of a text, each with one comma; other bytes stay. Nil: nothing to cut.
    public func removingNullValues(from body: [UInt8]) throws(BodyDefect) -> [UInt8]? {
        guard !Self.isWithoutValue(body) else { return nil }
        let (_, text, cuts) = try Self.read(body, removesNulls: true)
        guard !cuts.isEmpty else { return nil }
        var kept: [UInt8] = []
        kept.reserveCapacity(text.count)
        var end = 0
        for cut in cuts {
            kept += text[end..<cut.lowerBound]
            end = cut.upperBound
        }
        kept += text[end...]
        let encoding = JSONEncoding(of: body)
        return body.prefix(encoding.mark) + encoding.bytes(of: kept)
    }

    static func isWithoutValue(_ body: [UInt8]) -> Bool { body.isEmpty || body == [0x20] }

    /// - Returns: see ``JSONScanner``; the cuts are of the text, which is UTF-8 without a mark.
    static func read(
        _ body: [UInt8], makesValue: Bool = false, removesNulls: Bool = false, refusesRepeatedKeys: Bool = false
    ) throws(BodyDefect) -> (value: ParameterValue, text: [UInt8], cuts: [Range<Int>]) {
        let (text, isWhole) = JSONEncoding(of: body).utf8(of: body)
        guard isWhole else {
            throw BodyDefect(
                "not in the encoding in which it begins, UTF-16 or UTF-32",
                at: TextPlace(ofByte: text.count, in: text.span))
        }
        var scanner = JSONScanner(text.span, makesValue: makesValue, removesNulls: removesNulls)
        return (try scanner.scan(refusesRepeatedKeys: refusesRepeatedKeys), text, scanner.cuts)
    }
}
