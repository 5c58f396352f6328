/// The result of a non-blocking operation.
package enum TLSResult<Value> {
    case complete(Value)
    case wantsRead
    /// Repeat when the descriptor is writable; a write may use other memory with the same first bytes.
    case wantsWrite
    /// The peer sent close_notify: the data is complete.
    case closed
    case failed(TLSError)
}

extension TLSResult: Sendable where Value: Sendable {}

package enum TLSVersion: UInt8, Comparable, Sendable, CustomStringConvertible {
    case tls10, tls11, tls12, tls13

    package static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }

    package var description: String { "TLS 1.\(rawValue)" }
}

/// The decision on a peer's certificates.
package enum PeerVerdict: Sendable {
    case accept
    /// The handshake fails with the alert for the X509_V_ERR_… code (`VerificationFailure.x509Code`).
    case reject(x509Code: CInt)
}
