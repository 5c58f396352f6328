public import Serialization
import Session

/// What a request carries after its head.
///
/// A redirect (307, 308), a challenge or a closed connection needs the body again: bytes and files are read again, a
/// stream is made anew (`needNewBodyStream` of NSURLSession). A file that changes while it is sent fails the task.
public struct RequestBody: Sendable {
    /// The pieces of a body that a program makes as it goes. A failure of it is the task's.
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

    /// A text in UTF-8.
    public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

    /// A regular file, which is read as it is sent.
    public static func file(_ path: String) -> RequestBody { RequestBody(content: .file(path)) }

    /// A form in parts, whose files are read as it is sent. The request needs ``MultipartForm/contentType``.
    public static func form(_ form: MultipartForm) -> RequestBody { RequestBody(content: .form(form)) }

    /// Pieces that a program makes as it goes; the next one is asked for when the one before has been passed on.
    /// - Parameters:
    ///   - length: of all pieces, in bytes; nil: it isn't known, and the body is sent in chunks. A stream of another
    ///     length fails the task.
    ///   - make: called each time that the body is to be sent, on the session's thread: it must not wait. Nil: it can't
    ///     be made again, and what needed it fails.
    public static func stream(length: Int? = nil, make: @escaping @Sendable () -> Stream?) -> RequestBody {
        RequestBody(content: .stream(length: length, make: make))
    }

    /// True if there is no body. One of no bytes isn't empty: its length is sent.
    public var isEmpty: Bool { if case .none = content { true } else { false } }
}
