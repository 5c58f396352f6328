/// Reads JSON: AFJSONResponseSerializer. The value keeps the order of names and the digits of numbers; of a name that
/// repeats, the last counts.
///
/// A body that is empty or a single space, as Rails answers `head :ok`, has no value and is not an error.
///
/// Before a value is made, one pass over the text judges it and says where it is wrong, which JSONSerialization
/// doesn't. It accepts what JSONSerialization accepts: any value of RFC 8259 (the original's default options
/// ask for an object or an array), names that repeat, UTF-8 with or without a byte order mark, UTF-16, UTF-32;
/// not NaN, 1e400, a lone surrogate, or nesting of more than 512. A comma before the end of an array or object, which
/// JSONSerialization lets pass on Linux, is refused: it isn't JSON.
public struct JSONResponseSerializer: ResponseSerializer {
    /// Those of the original.
    public static let contentTypes = [MediaRange].known("application/json", "text/json", "text/javascript")

    public var format: String { "JSON" }
    /// 2xx, if nothing else is said.
    public var acceptableStatuses: [StatusRange] = [.success]
    public var acceptableContentTypes: [MediaRange]? = Self.contentTypes
    /// Members and elements that are null are left out, at any depth.
    public var removesNullValues: Bool

    /// - Parameter removesNullValues: see ``removesNullValues``.
    public init(removesNullValues: Bool = false) { self.removesNullValues = removesNullValues }

    public func value(ofBody body: [UInt8]) throws(BodyDefect) -> ParameterValue? {
        guard !Self.isWithoutValue(body) else { return nil }
        try check(body: body)
        let text = try removesNullValues ? removingNullValues(from: body) ?? body : body
        return try JSONReader.value(of: text, repetition: .lastCounts)
    }

    public func check(body: [UInt8]) throws(BodyDefect) {
        guard !Self.isWithoutValue(body) else { return }
        let encoding = JSONEncoding(of: body)
        if encoding.isUTF8 {
            _ = try Self.scan(body.span.extracting(encoding.mark...), findsNulls: false)
        } else {
            _ = try Self.scanned(body, encoding, findsNulls: false)
        }
    }

    /// Cuts null members and elements out of a text, each with one comma; other bytes stay. Nil if there are none.
    public func removingNullValues(from body: [UInt8]) throws(BodyDefect) -> [UInt8]? {
        guard !Self.isWithoutValue(body) else { return nil }
        let encoding = JSONEncoding(of: body)
        let (text, cuts) = try Self.scanned(body, encoding, findsNulls: true)
        guard !cuts.isEmpty else { return nil }
        var kept: [UInt8] = []
        kept.reserveCapacity(text.count)
        var end = 0
        for cut in cuts {
            kept += text[end..<cut.lowerBound]
            end = cut.upperBound
        }
        kept += text[end...]
        return body.prefix(encoding.mark) + encoding.bytes(of: kept)
    }

    private static func isWithoutValue(_ body: [UInt8]) -> Bool { body.isEmpty || body == [0x20] }

    private static func scanned(
        _ body: [UInt8], _ encoding: JSONEncoding, findsNulls: Bool
    ) throws(BodyDefect) -> (text: [UInt8], cuts: [Range<Int>]) {
        let (text, isWhole) = encoding.utf8(of: body)
        guard isWhole else {
            throw BodyDefect(
                "not in the encoding in which it begins, UTF-16 or UTF-32", at: TextPlace(ofByte: text.count, in: text.span))
        }
        return (text, try scan(text.span, findsNulls: findsNulls))
    }

    private static func scan(_ text: Span<UInt8>, findsNulls: Bool) throws(BodyDefect) -> [Range<Int>] {
        var scanner = JSONScanner(text, findsNulls: findsNulls)
        do {
            try scanner.scan()
        } catch {
            throw BodyDefect(error.explanation, at: TextPlace(ofByte: error.offset, in: text))
        }
        return scanner.cuts
    }
}
