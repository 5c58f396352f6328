import CPinproxyOpenSSL

final class TimestampList {
    let source: CertificateTimestamp.Source
    private var timestamps: [OpaquePointer] = []

    /// Takes the timestamps of a certificate; none if unreadable.
    init(in certificate: Certificate) {
        source = .certificate
        take(X509_get_ext_d2i(certificate.pointer, NID_ct_precert_scts, nil, nil))
    }

    /// Takes the encoded timestamps of a handshake; unreadable ones are skipped.
    init(_ encodings: [[UInt8]]) {
        source = .handshake
        for encoding in encodings.prefix(Self.limit) {
            encoding.withUnsafeBufferPointer { bytes in
                var cursor = bytes.baseAddress
                guard !bytes.isEmpty, let timestamp = o2i_SCT(nil, &cursor, bytes.count) else { return }
                timestamps.append(timestamp)
            }
        }
        set(SCT_SOURCE_TLS_EXTENSION)
    }

    /// Takes the timestamps of any OCSP response: the log's signature names the certificate.
    init(inResponse response: [UInt8]) {
        source = .ocspResponse
        guard !response.isEmpty, let answer = try? OCSPAnswer(response) else { return }
        for index in 0..<min(OCSP_resp_count(answer.pointer), 8) {
            guard let single = OCSP_resp_get0(answer.pointer, index) else { continue }
            take(OCSP_SINGLERESP_get1_ext_d2i(single, NID_ct_cert_scts, nil, nil))
        }
        set(SCT_SOURCE_OCSP_STAPLED_RESPONSE)
    }

    deinit {
        for timestamp in timestamps { SCT_free(timestamp) }
    }

    /// Per source: each one of a known log costs a signature check.
    private static let limit = 16

    /// The first ones, up to the limit.
    var first: ArraySlice<OpaquePointer> { timestamps.prefix(Self.limit) }

    /// Takes ownership of a decoded extension's timestamps.
    private func take(_ extensionValue: UnsafeMutableRawPointer?) {
        guard let extensionValue else { return }
        let stack = OpaquePointer(extensionValue)
        while let timestamp = OPENSSL_sk_shift(stack) { timestamps.append(OpaquePointer(timestamp)) }
        OPENSSL_sk_free(stack)
    }

    private func set(_ source: sct_source_t) {
        for timestamp in timestamps { SCT_set_source(timestamp, source) }
    }
}

/// Checks timestamps against one chain, a list of logs, and a clock.
final class TransparencyCheck {
    private let context: OpaquePointer
    private let logs: TransparencyLogs
    private let milliseconds: UInt64

    init(chain: VerifiedChain, logs: TransparencyLogs, time: UnixTime) {
        guard let context = CT_POLICY_EVAL_CTX_new() else { preconditionFailure("out of memory") }
        CT_POLICY_EVAL_CTX_set1_cert(context, chain.leaf.pointer)
        if chain.certificates.count > 1 { CT_POLICY_EVAL_CTX_set1_issuer(context, chain.certificates[1].pointer) }
        CT_POLICY_EVAL_CTX_set_shared_CTLOG_STORE(context, logs.pointer)
        milliseconds = UInt64(clamping: time).multipliedReportingOverflow(by: 1000).partialValue
        CT_POLICY_EVAL_CTX_set_time(context, milliseconds)
        self.context = context
        self.logs = logs
    }

    deinit { CT_POLICY_EVAL_CTX_free(context) }

    func judge(_ list: TimestampList) -> [CertificateTimestamp] {
        list.first.map { timestamp in
            var start: UnsafeMutablePointer<UInt8>?
            let count = SCT_get0_log_id(timestamp, &start)
            let id = start.map { [UInt8](UnsafeBufferPointer(start: $0, count: count)) } ?? []
            return CertificateTimestamp(
                source: list.source, logID: Hexadecimal.encode(id), log: logs.name(ofLog: id),
                time: UnixTime(SCT_get_timestamp(timestamp) / 1000), outcome: outcome(timestamp))
        }
    }

    private func outcome(_ timestamp: OpaquePointer) -> CertificateTimestamp.Outcome {
        _ = SCT_validate(timestamp, context)
        OpenSSLErrorQueue.clear()
        return switch SCT_get_validation_status(timestamp) {
        case SCT_VALIDATION_STATUS_VALID: .valid
        case SCT_VALIDATION_STATUS_UNKNOWN_LOG: .unknownLog
        case SCT_VALIDATION_STATUS_UNKNOWN_VERSION: .unknownVersion
        case SCT_VALIDATION_STATUS_UNVERIFIED: .noIssuer
        // OpenSSL refuses one from the future before it looks at the signature.
        default: SCT_get_timestamp(timestamp) > milliseconds ? .fromTheFuture : .badSignature
        }
    }
}
