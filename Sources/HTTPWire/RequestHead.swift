/// The form of a request's target (RFC 9112 section 3.2).
package enum TargetForm: Sendable, Equatable {
    /// A path with an optional query.
    case origin
    /// A whole URI, as clients send it to a proxy; already cut into its parts.
    case absolute(AbsoluteTarget)
    /// `host:port` of CONNECT, not looked at yet: `Authority.parse` says whether it is one.
    case authority
    /// `*` of OPTIONS.
    case asterisk
}

/// The head of a request, as ranges over the bytes that it was parsed from. Reusable storage; its contents count only
/// after `HeadParser.parseRequest` returned `complete`.
package struct RequestHead: Sendable {
    package internal(set) var method: Method = .other
    package internal(set) var methodRange: ByteRange = .empty
    package internal(set) var target: ByteRange = .empty
    package internal(set) var targetForm: TargetForm = .origin
    package internal(set) var version: HTTPVersion = .http11
    package internal(set) var fields: [HeadField] = []
    /// Bytes up to the body, empty lines before the request line included.
    package internal(set) var length: UInt32 = 0
    package internal(set) var bodyLength: BodyLength = .none
    /// `Expect: 100-continue` in HTTP/1.1; in 1.0 it is ignored (RFC 9110 section 10.1.1).
    package internal(set) var expectsContinue: Bool = false
    /// `Connection: upgrade` with Upgrade in HTTP/1.1; never for `h2c`, which would bypass every rule.
    package internal(set) var wantsUpgrade: Bool = false
    /// The value of the only Host field; nil if HTTP/1.0 came without one.
    package internal(set) var host: ByteRange? = nil
    package internal(set) var wantedPart = WantedPart.whole

    var connection: ConnectionOptions = []
    var acceptsTrailers = false
    var lastVia: Int? = nil

    package init() {}

    package func first(_ id: FieldName) -> ByteRange? {
        for index in fields.indices where fields[index].id == id { return fields[index].value }
        return nil
    }

    mutating func clear() {
        method = .other
        fields.removeAll(keepingCapacity: true)
        host = nil
        lastVia = nil
        connection = []
        acceptsTrailers = false
        bodyLength = .none
        expectsContinue = false
        wantsUpgrade = false
        length = 0
    }
}
