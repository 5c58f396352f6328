/// Validates a response and makes a value of its body: AFURLResponseSerialization.
///
///     let serializer = JSONResponseSerializer()
///     let head = ResponseHead(status: 200, contentType: ContentType("application/json"), body: .unknownLength)
///     let object = try serializer.value(of: body, head: head)
///
/// A response is judged in two steps: its head by status and content type, then its body. Pass the body without content
/// codings; see ``ContentDecoder``.
public protocol ResponseSerializer<Value>: Sendable {
    /// The value made from a body.
    associatedtype Value

    /// For display: `JSON`.
    var format: String { get }
    /// The accepted statuses. Others are refused, whatever the body.
    var acceptableStatuses: [StatusRange] { get }
    /// The accepted content types; nil: any, or none at all.
    var acceptableContentTypes: [MediaRange]? { get }

    /// - Returns: nil for a body without a value, such as an empty one.
    /// - Throws: the body's defect, and its place.
    func value(ofBody body: [UInt8]) throws(BodyDefect) -> Value?

    /// Judges without making a value, which may be cheaper.
    func check(body: [UInt8]) throws(BodyDefect)
}

extension ResponseSerializer {
    public func check(body: [UInt8]) throws(BodyDefect) { _ = try value(ofBody: body) }

    /// Validates a head. A wrong content type counts only if there is a body.
    public func validate(_ head: ResponseHead, bodyIsEmpty: Bool) throws(ResponseSerializationError) {
        let criteria = HeadCriteria(statuses: acceptableStatuses, contentTypes: acceptableContentTypes)
        if let error = criteria.error(in: head, bodyIsEmpty: bodyIsEmpty) { throw error }
    }

    /// Validates a whole response; its body has no content codings. Nil for a body without a value.
    public func value(of body: [UInt8], head: ResponseHead) throws(ResponseSerializationError) -> Value? {
        try validate(head, bodyIsEmpty: body.isEmpty)
        do {
            return try value(ofBody: body)
        } catch {
            throw ResponseSerializationError(.malformedBody(error), expected: format)
        }
    }
}

struct HeadCriteria: Sendable {
    let statuses: [StatusRange]?
    let contentTypes: [MediaRange]?

    func error(in head: ResponseHead, bodyIsEmpty: Bool) -> ResponseSerializationError? {
        let typeError = bodyIsEmpty ? nil : typeError(in: head)
        guard let statuses, !statuses.contains(where: { $0.codes.contains(head.status) }) else { return typeError }
        return ResponseSerializationError(
            .unacceptableStatus(head.status), expected: statuses.map(\.description).joined(separator: ", "),
            underlying: typeError.map { [$0] } ?? [])
    }

    private func typeError(in head: ResponseHead) -> ResponseSerializationError? {
        guard let contentTypes else { return nil }
        if let essence = head.contentType?.essence, contentTypes.contains(where: { $0.includes(essence: essence) }) {
            return nil
        }
        return ResponseSerializationError(
            .unacceptableContentType(head.contentType),
            expected: contentTypes.map(\.description).joined(separator: ", "))
    }
}

extension [MediaRange] {
    /// From texts known to be valid.
    static func known(_ texts: String...) -> [MediaRange] { texts.compactMap { try? MediaRange($0) } }
}
