/// Reads property lists, XML and binary: AFPropertyListResponseSerializer.
///
/// The old text format of OpenStep is refused, unlike in AFNetworking: almost any word is a property list in it.
/// So is what a reader would choke on: XML that isn't well-formed, nests more than 256 deep or declares entities (see
/// ``XMLResponseSerializer``), a binary list that contains itself or that shared references expand too much.
public struct PropertyListResponseSerializer: ResponseSerializer {
    /// The content types of AFNetworking.
    public static let contentTypes = [MediaRange].known("application/x-plist")

    public var format: String { "a property list" }
    /// The accepted statuses; 2xx by default.
    public var acceptableStatuses: [StatusRange] = [.success]
    public var acceptableContentTypes: [MediaRange]? = Self.contentTypes

    /// Uses the statuses and content types of AFNetworking.
    public init() {}

    /// - Returns: nil if the body is empty.
    public func value(ofBody body: [UInt8]) throws(BodyDefect) -> PropertyListValue? {
        guard !body.isEmpty else { return nil }
        if BinaryPropertyList.begins(body) { return try BinaryPropertyList.value(of: body) }
        try Self.expectXML(body)
        return try XMLPropertyList.read(body, keepsValue: true)
    }

    public func check(body: [UInt8]) throws(BodyDefect) {
        guard !body.isEmpty else { return }
        if BinaryPropertyList.begins(body) { return try BinaryPropertyList.check(body) }
        try Self.expectXML(body)
        _ = try XMLPropertyList.read(body, keepsValue: false)
    }

    /// The first character that isn't white space is `<`, in any of the encodings of XML.
    private static func expectXML(_ body: [UInt8]) throws(BodyDefect) {
        let skipped: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D, 0x00, 0xEF, 0xBB, 0xBF, 0xFE, 0xFF]
        guard body.prefix(256).first(where: { !skipped.contains($0) }) == UInt8(ascii: "<") else {
            throw BodyDefect(
                "it begins neither as XML nor as a binary property list", at: TextPlace(line: 1, column: 1))
        }
    }
}
