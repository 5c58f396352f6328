/// NTLM and Negotiate authenticate a connection, not a request (RFC 4559): whatever comes later on the
/// same connection counts as the same user's. A proxy that shares such a connection gives one
/// client's rights to another.
private enum ConnectionAuthentication {
    static func isMeant(by fields: [HeadField], _ id: FieldName, in bytes: Span<UInt8>) -> Bool {
        for index in fields.indices where fields[index].id == id {
            let value = fields[index].value
            if begins(value, with: "ntlm", in: bytes) || begins(value, with: "negotiate", in: bytes) { return true }
        }
        return false
    }

    /// Whether the authentication scheme, a whole token, is `scheme` (in lower case).
    private static func begins(_ value: ByteRange, with scheme: String, in bytes: Span<UInt8>) -> Bool {
        let end = value.start + scheme.utf8.count
        guard end <= value.end, bytes.equals(ByteRange(value.start, end), ignoringCase: scheme) else { return false }
        return end == value.end || bytes[end] == .space || bytes[end] == UInt8(ascii: ",")
    }
}

extension RequestHead {
    /// Whether its credentials are for the connection that it is sent on.
    package func authenticatesConnection(in bytes: Span<UInt8>) -> Bool {
        ConnectionAuthentication.isMeant(by: fields, .authorization, in: bytes)
    }
}

extension ResponseHead {
    /// Whether it asks for credentials that are for the connection that it came on.
    package func authenticatesConnection(in bytes: Span<UInt8>) -> Bool {
        status == 401 && ConnectionAuthentication.isMeant(by: fields, .wwwAuthenticate, in: bytes)
    }
}
