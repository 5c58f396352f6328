/// The request methods with special rules. Method names are case-sensitive.
package enum Method: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, connect, options, trace, patch
    /// A method without special rules; `RequestHead.methodRange` says which.
    case other

    /// RFC 9110 section 9.2.1: the client asks for no change of state.
    @inlinable package var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        case .post, .put, .delete, .connect, .patch, .other: false
        }
    }

    /// RFC 9110 section 9.2.2: sending it twice means the same as sending it once.
    @inlinable package var isIdempotent: Bool {
        switch self {
        case .get, .head, .options, .trace, .put, .delete: true
        case .post, .connect, .patch, .other: false
        }
    }

    package var text: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .connect: "CONNECT"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .patch: "PATCH"
        case .other: ""
        }
    }

    private static let packed: [UInt64] = allCases.map { $0.text.utf8.reduce(0) { $0 << 8 | UInt64($1) } }

    init(_ range: ByteRange, in bytes: Span<UInt8>) {
        self = .other
        guard range.count <= 7 else { return }
        var name: UInt64 = 0
        for offset in range.offsets { name = name << 8 | UInt64(bytes[offset]) }
        for index in Self.packed.indices where Self.packed[index] == name {
            self = Method(rawValue: UInt8(index)) ?? .other
        }
    }
}

/// Later minor versions count as 1.1 (RFC 9110 section 2.5). Only `parseHTTP2` of a head sets `http2`.
package enum HTTPVersion: UInt8, Sendable, Comparable {
    case http10, http11, http2

    @inlinable package static func < (a: HTTPVersion, b: HTTPVersion) -> Bool { a.rawValue < b.rawValue }
}

/// How the end of a message's body is found (RFC 9112 section 6.3).
package enum BodyFraming: Sendable, Equatable {
    case none
    /// This many bytes follow. `length(0)` is a body that is present and empty.
    case length(UInt64)
    case chunked
    /// Responses only: the body ends where the connection does.
    case untilClose

    /// The body's length, for any version of HTTP.
    package var length: BodyLength {
        switch self {
        case .none: .none
        case .length(let length): .known(length)
        case .chunked, .untilClose: .unknown
        }
    }
}

/// How HTTP/1.1 carries a message: where its body ends, and whether the connection can carry another message.
package struct HTTP1Framing: Sendable, Equatable {
    package internal(set) var body = BodyFraming.none
    /// Requests: the client wants the connection kept: HTTP/1.1 without `close`, or HTTP/1.0 with `keep-alive`.
    package internal(set) var keepsAlive = false

    package init() {}
}

package enum BodyLength: Sendable, Equatable {
    case none
    case known(UInt64)
    case unknown

    package var isEmpty: Bool { self == .none || self == .known(0) }
    /// Nil if unknown, or without a body.
    package var bytes: UInt64? { if case .known(let length) = self { length } else { nil } }
}

package struct HeadField: Sendable {
    package let name: ByteRange
    package let value: ByteRange
    /// The whole line, including CR LF.
    package let line: ByteRange
    package let id: FieldName

    /// Whether it is about the body's bytes, and so invalid for another body (RFC 9530, RFC 3230, RFC 1864).
    package func isDigest(in bytes: Span<UInt8>) -> Bool {
        id == .other && Self.digests.contains(name.text(in: bytes).lowercased())
    }

    private static let digests: Set = ["content-md5", "content-digest", "repr-digest", "digest"]
}

struct ConnectionOptions: OptionSet {
    let rawValue: UInt8
    static let close = ConnectionOptions(rawValue: 1)
    static let keepAlive = ConnectionOptions(rawValue: 2)
    static let upgrade = ConnectionOptions(rawValue: 4)
    static let te = ConnectionOptions(rawValue: 8)
    /// It names fields that are hop-by-hop for this message only.
    static let nominations = ConnectionOptions(rawValue: 16)
}
