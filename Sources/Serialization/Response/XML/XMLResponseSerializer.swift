/// Checks that a body is well-formed XML: AFXMLParserResponseSerializer and AFXMLDocumentResponseSerializer.
/// The value is the body, for the parser of your choice.
///
/// Nothing is ever fetched: no DTD, no entity, no file. Entities that the document declares itself are checked, and
/// refused if they amplify (billion laughs). Elements nest at most 256 deep. Namespaces are not judged.
public struct XMLResponseSerializer: ResponseSerializer {
    /// The content types of AFNetworking.
    public static let contentTypes = [MediaRange].known("application/xml", "text/xml")

    public var format: String { "XML" }
    /// The accepted statuses; 2xx by default.
    public var acceptableStatuses: [StatusRange] = [.success]
    public var acceptableContentTypes: [MediaRange]? = Self.contentTypes

    /// Uses the statuses and content types of AFNetworking.
    public init() {}

    /// - Returns: nil if the body is empty.
    public func value(ofBody body: [UInt8]) throws(BodyDefect) -> [UInt8]? {
        guard !body.isEmpty else { return nil }
        try XMLDocument.read(body)
        return body
    }
}
