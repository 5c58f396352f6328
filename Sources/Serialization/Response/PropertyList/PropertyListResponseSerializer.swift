/// Reads property lists, XML and binary: AFPropertyListResponseSerializer.
///
/// The old text format of OpenStep is refused, unlike in the original: almost any word is a property list in it.
/// So is what a reader would choke on: XML that isn't well-formed or nests more than 256 deep (see
/// ``XMLResponseSerializer``), a binary list that contains itself or expands a thousand times by shared references.
public struct PropertyListResponseSerializer: ResponseSerializer {
    /// Those of the original.
    public static let contentTypes = [MediaRange].known("application/x-plist")

    public var format: String { "a property list" }
    /// 2xx, if nothing else is said.
    public var acceptableStatuses: [StatusRange] = [.success]
    public var acceptableContentTypes: [MediaRange]? = Self.contentTypes

    /// With the statuses and content types of the original.
    public init() {}

    /// - Returns: nil if the body is empty.
    public func value(ofBody body: [UInt8]) throws(BodyDefect) -> PropertyListValue? {
        guard !body.isEmpty else { return nil }
        if BinaryPropertyList.begins(body) { return try BinaryPropertyList.value(of: body) }
        guard Self.looksLikeXML(body) else {
            throw BodyDefect("it begins neither as XML nor as a binary property list", at: TextPlace(line: 1, column: 1))
        }
        try XMLWellFormedness.check(body)
        return try XMLPropertyList.value(of: body)
    }

    /// The first character that isn't white space is `<`, in any of the encodings of XML.
    private static func looksLikeXML(_ body: [UInt8]) -> Bool {
        let skipped: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D, 0x00, 0xEF, 0xBB, 0xBF, 0xFE, 0xFF]
        return body.prefix(256).first { !skipped.contains($0) } == UInt8(ascii: "<")
    }
}
