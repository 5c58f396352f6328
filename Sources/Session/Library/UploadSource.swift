import EventLoop
import HTTPWire
import Serialization

/// What a body comes to when its next piece is asked for.
package enum BodyPiece {
    case bytes([UInt8])
    /// ``UploadSource/moved`` follows.
    case waiting
    case ended
    case failed(ExchangeFailure)
}

/// Where the body of a request comes from. Lives on the loop.
package protocol UploadSource: AnyObject {
    /// In bytes; nil: it isn't known.
    var length: Int? { get }
    /// There is no body; one of no bytes is one.
    var isEmpty: Bool { get }
    /// It can be sent again, as far as that is known now.
    var canRewind: Bool { get }
    /// Told when there is something after ``BodyPiece/waiting``.
    var moved: (() -> Void)? { get set }
    func next() -> BodyPiece
    /// Begins at its first byte again.
    func rewind()
    /// Nothing more is asked for.
    func close()
}

extension UploadSource {
    /// How the body is framed. POST, PUT and PATCH without a body say so (RFC 9110 section 8.6).
    func framing(for method: MethodName) -> BodyFraming {
        if isEmpty { return ["POST", "PUT", "PATCH"].contains(method.description) ? .length(0) : .none }
        return length.map { .length(UInt64($0)) } ?? .chunked
    }
}

/// Bytes at hand, or none.
final class BytesSource: UploadSource {
    private static let piece = 64 << 10
    private let bytes: [UInt8]?
    private var position = 0
    var moved: (() -> Void)?

    init(_ bytes: [UInt8]?) { self.bytes = bytes }

    var length: Int? { bytes?.count ?? 0 }
    var isEmpty: Bool { bytes == nil }
    var canRewind: Bool { true }

    func next() -> BodyPiece {
        guard let bytes, position < bytes.count else { return .ended }
        let end = min(position + Self.piece, bytes.count)
        defer { position = end }
        return .bytes(Array(bytes[position..<end]))
    }

    func rewind() { position = 0 }
    func close() {}
}
