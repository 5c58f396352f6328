/// What a non-blocking operation came to.
package enum TLSResult<Value> {
    case complete(Value)
    case wantsRead
    /// Repeat when the descriptor is writable; a write may use other memory that begins with the same bytes.
    case wantsWrite
    /// The peer has sent close_notify: nothing more will come, and what came is whole.
    case closed
    case failed(TLSError)
}

extension TLSResult: Sendable where Value: Sendable {}

package enum TLSVersion: UInt8, Comparable, Sendable, CustomStringConvertible {
    case tls10, tls11, tls12, tls13

    package static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }

    package var description: String { "TLS 1.\(rawValue)" }
}

/// What is to become of a handshake whose certificates have been seen.
package enum PeerVerdict: Sendable {
    case accept
    /// The handshake fails with the alert for the X509_V_ERR_… code (`VerificationFailure.x509Code`).
    case reject(x509Code: CInt)
}
