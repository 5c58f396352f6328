public import FoundationEssentials
import PinproxyHTTPWire
public import PinproxySerialization
import PinproxySession

/// A request's body. A redirect (307, 308), a challenge or a closed connection needs it again: bytes and files are
/// reread, and streams recreated (`needNewBodyStream` of NSURLSession). A file that changes while it is sent fails the
/// task.
public struct RequestBody: Sendable {
    /// The pieces of a generated body. If it fails, the task fails.
    public typealias Stream = AsyncThrowingStream<[UInt8], any Error>

    enum Content: Sendable {
        case none
        case bytes([UInt8])
        case file(String)
        case form(MultipartForm, [StreamedPart])
        case stream(length: Int?, make: @Sendable () -> Stream?)
    }

    let content: Content
    /// Sent where the request has no Content-Type; nil: none.
    let contentType: String?

    init(content: Content, contentType: String? = nil) {
        self.content = content
        self.contentType = contentType
    }

    /// No body.
    public static let none = RequestBody(content: .none)

    /// A body of these bytes.
    public static func bytes(_ bytes: [UInt8]) -> RequestBody { RequestBody(content: .bytes(bytes)) }

    /// A body of these bytes.
    public static func data(_ data: Data) -> RequestBody { .bytes(Array(data)) }

    /// A body of UTF-8 text.
    public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

    /// A value as JSON, with its Content-Type unless the request has another.
    /// - Throws: ``SessionError/invalidRequest(_:)`` if the value can't be encoded.
    public static func json(
        _ value: some Encodable, encoder: JSONEncoder = JSONEncoder()
    ) throws(SessionError) -> RequestBody {
        do {
            return RequestBody(content: .bytes(Array(try encoder.encode(value))), contentType: "application/json")
        } catch {
            throw .invalidRequest("the body can't be encoded as JSON: \(CodingProblem(error))")
        }
    }

    /// A regular file, read as it is sent.
    public static func file(_ path: String) -> RequestBody { RequestBody(content: .file(path)) }

    /// The regular file of a file URL, read as it is sent.
    /// - Throws: ``SessionError/invalidRequest(_:)`` for other URLs.
    public static func file(_ url: URL) throws(SessionError) -> RequestBody { .file(try path(of: url)) }

    static func path(of url: URL) throws(SessionError) -> String {
        guard url.isFileURL else { throw .invalidRequest("\(ShownText(url.absoluteString)) is not a file URL") }
        return url.path
    }

    /// A multipart form, with its Content-Type. Its files are read as it is sent.
    /// - Parameters:
    ///   - form: its parts and their boundary.
    ///   - streams: parts that are generated; sent after those of the form.
    public static func form(_ form: MultipartForm, streams: [StreamedPart] = []) -> RequestBody {
        RequestBody(content: .form(form, streams), contentType: form.contentType)
    }

    /// A body of generated pieces, each pulled after the previous one was sent.
    /// - Parameters:
    ///   - length: of all pieces, in bytes; nil: unknown, and sent in chunks. Another length fails the task.
    ///   - make: called for each sending, on the session's thread: it must not block. Nil: it can't be made again,
    ///     which fails the task.
    public static func stream(length: Int? = nil, make: @escaping @Sendable () -> Stream?) -> RequestBody {
        RequestBody(content: .stream(length: length, make: make))
    }

    /// True if there is no body. Zero bytes are a body: their length is sent.
    public var isEmpty: Bool { if case .none = content { true } else { false } }

    /// Its type replaces the request's, which can't know the boundary.
    var isForm: Bool { if case .form = content { true } else { false } }
}

extension RequestBody: CustomStringConvertible {
    /// Its kind and length, without the bytes, which may be secret.
    public var description: String {
        switch content {
        case .none: "no body"
        case .bytes(let bytes): "\(bytes.count) bytes"
        case .file(let path): "the file \(path)"
        case .form: "a form"
        case .stream(let length, _): length.map { "a stream of \($0) bytes" } ?? "a stream"
        }
    }
}

/// A generated part of a multipart form (`appendPartWithInputStream:name:fileName:length:mimeType:`).
public struct StreamedPart: Sendable {
    let name: String
    let fileName: String
    let type: MediaType?
    let length: Int
    let make: @Sendable () -> RequestBody.Stream?

    /// - Parameters:
    ///   - name: of the form's field.
    ///   - fileName: as the server sees it.
    ///   - type: nil: by the ending of the file's name, else `application/octet-stream`.
    ///   - length: in bytes. Another length fails the task.
    ///   - make: see ``RequestBody/stream(length:make:)``.
    /// - Throws: ``SessionError/invalidRequest(_:)`` for a wrong name or length.
    public init(
        name: String, fileName: String, type: MediaType? = nil, length: Int,
        make: @escaping @Sendable () -> RequestBody.Stream?
    ) throws(SessionError) {
        guard length >= 0 else { throw .invalidRequest("the part \(name) has the length \(length)") }
        do throws(InvalidValue) {
            // Names follow the rules of other parts.
            _ = try MultipartPart(name: name, content: .data([], fileName: fileName, type: type))
        } catch {
            throw SessionError(error)
        }
        self.name = name
        self.fileName = fileName
        self.type = type
        self.length = length
        self.make = make
    }
}
