import CPinproxyOpenSSL
import CPinproxyShims
import Glibc
import Synchronization

/// What a test server staples to its chain, for clients that ask for it.
public final class ServerEvidence: Sendable {
    private let response: [UInt8]?
    private let timestamps: [UInt8]?
    private let asked = Atomic(0)
    /// The number of handshakes that requested an OCSP response.
    public var requests: Int { asked.load(ordering: .relaxed) }

    /// - Parameters:
    ///   - response: an OCSP response as DER, or anything else.
    ///   - timestamps: a SignedCertificateTimestampList, or anything else.
    public init(response: [UInt8]?, timestamps: [UInt8]? = nil) {
        self.response = response
        self.timestamps = timestamps
    }

    /// Makes all connections of the SSL_CTX send it. Must outlive them.
    public func install(on context: OpaquePointer) throws {
        let me = Unmanaged.passUnretained(self).toOpaque()
        try require(shim_SSL_CTX_set_status_argument(context, me), "stapling")
        try require(
            shim_SSL_CTX_set_status_callback(context) { connection, me in
                guard let connection, let evidence = ServerEvidence.of(me) else { return SSL_TLSEXT_ERR_NOACK }
                evidence.asked.add(1, ordering: .relaxed)
                guard let bytes = evidence.response,
                    let copy = CRYPTO_malloc(max(bytes.count, 1), nil, 0)
                else { return SSL_TLSEXT_ERR_NOACK }
                memcpy(copy, bytes, bytes.count)
                _ = shim_SSL_set_status_response(connection, copy.assumingMemoryBound(to: UInt8.self), bytes.count)
                return SSL_TLSEXT_ERR_OK
            }, "stapling")
        guard timestamps != nil else { return }
        let places = SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_2_SERVER_HELLO | SSL_EXT_TLS1_3_CERTIFICATE
        try require(
            SSL_CTX_add_custom_ext(
                context, UInt32(TLSEXT_TYPE_signed_certificate_timestamp), UInt32(places),
                { _, _, _, output, count, _, index, _, me in
                    guard index == 0, let bytes = ServerEvidence.of(me)?.timestamps,
                        let copy = CRYPTO_malloc(max(bytes.count, 1), nil, 0)
                    else { return 0 }
                    memcpy(copy, bytes, bytes.count)
                    output?.pointee = UnsafePointer(copy.assumingMemoryBound(to: UInt8.self))
                    count?.pointee = bytes.count
                    return 1
                }, { _, _, _, bytes, _ in CRYPTO_free(UnsafeMutableRawPointer(mutating: bytes), nil, 0) }, me,
                { _, _, _, _, _, _, _, _, _ in 1 }, nil), "timestamps in the handshake")
    }

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> ServerEvidence? {
        pointer.map { Unmanaged<ServerEvidence>.fromOpaque($0).takeUnretainedValue() }
    }
}
