public import PinproxySerialization
import PinproxySession

/// A request's body. A redirect (307, 308), a challenge or a closed connection needs it again: bytes and files are
/// reread, and streams recreated (`needNewBodyStream` of NSURLSession). A file that changes while it is sent fails the
/// task.
public struct RequestBody: Sendable {
    /// Pieces of a generated body. Its failure is the task's.
    public typealias Stream = AsyncThrowingStream<[UInt8], any Error>

    enum Content: Sendable {
        case none
        case bytes([UInt8])
        case file(String)
        case form(MultipartForm)
        case stream(length: Int?, make: @Sendable () -> Stream?)
    }

    let content: Content

    /// No body.
    public static let none = RequestBody(content: .none)

    /// Bytes at hand.
    public static func bytes(_ bytes: [UInt8]) -> RequestBody { RequestBody(content: .bytes(bytes)) }

    /// UTF-8 text.
    public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

    /// A regular file, read as it is sent.
    public static func file(_ path: String) -> RequestBody { RequestBody(content: .file(path)) }

    /// A multipart form, whose files are read as it is sent. The request needs ``MultipartForm/contentType``.
    public static func form(_ form: MultipartForm) -> RequestBody { RequestBody(content: .form(form)) }

    /// Generated pieces, each pulled after the previous one was sent.
    /// - Parameters:
    ///   - length: of all pieces, in bytes; nil: unknown, and sent in chunks. Another length fails the task.
    ///   - make: called for each sending, on the session's thread: it must not block. Nil: it can't be made again,
    ///     which fails the task.
    public static func stream(length: Int? = nil, make: @escaping @Sendable () -> Stream?) -> RequestBody {
        RequestBody(content: .stream(length: length, make: make))
    }

    /// True if there is no body. Zero bytes are a body: their length is sent.
    public var isEmpty: Bool { if case .none = content { true } else { false } }
}
