/// NTLM and Negotiate authenticate a connection, not a request (RFC 4559). Sharing it would share a client's rights.
private enum ConnectionAuthentication {
    /// Whether a field of a request names such a scheme: credentials are of one.
    static func isUsed(by fields: [HeadField], in bytes: Span<UInt8>) -> Bool {
        for index in fields.indices where fields[index].id == .authorization {
            let value = fields[index].value
            if isScheme(at: value.start, of: value, in: bytes) { return true }
        }
        return false
    }

    /// Whether a response offers such a scheme. A mere word in a realm only costs an unshared connection.
    static func isOffered(by fields: [HeadField], in bytes: Span<UInt8>) -> Bool {
        for index in fields.indices where fields[index].id == .wwwAuthenticate {
            let value = fields[index].value
            for start in value.offsets where start == value.start || isBetweenWords(bytes[start - 1]) {
                if isScheme(at: start, of: value, in: bytes) { return true }
            }
        }
        return false
    }

    /// Whether one of them is a whole word there.
    private static func isScheme(at start: Int, of value: ByteRange, in bytes: Span<UInt8>) -> Bool {
        for scheme in ["ntlm", "negotiate"] {
            let end = start + scheme.utf8.count
            guard end <= value.end, bytes.equals(ByteRange(start, end), ignoringCase: scheme) else { continue }
            if end == value.end || isBetweenWords(bytes[end]) { return true }
        }
        return false
    }

    private static func isBetweenWords(_ byte: UInt8) -> Bool {
        byte == .space || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: ",")
    }
}

extension RequestHead {
    /// Whether its credentials are for the connection that it is sent on.
    package func authenticatesConnection(in bytes: Span<UInt8>) -> Bool {
        ConnectionAuthentication.isUsed(by: fields, in: bytes)
    }
}

extension ResponseHead {
    /// Whether it asks for credentials that are for the connection that it came on.
    package func authenticatesConnection(in bytes: Span<UInt8>) -> Bool {
        status == 401 && ConnectionAuthentication.isOffered(by: fields, in: bytes)
    }
}
