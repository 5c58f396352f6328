import CPinproxyOpenSSL

/// The result of checking a server's certificate timestamps.
package struct TransparencyResult: Sendable, Hashable, CustomStringConvertible {
    /// In order: the certificate's, the handshake's, the OCSP response's.
    package let timestamps: [CertificateTimestamp]
    /// Different logs required in the certificate.
    package let neededEmbedded: Int
    /// Different logs required otherwise, in the handshake.
    package let neededDelivered: Int

    /// Whether enough different logs are present.
    var isEnough: Bool {
        logs { $0 == .certificate } >= neededEmbedded || logs { $0 != .certificate } >= neededDelivered
    }

    private func logs(_ counts: (CertificateTimestamp.Source) -> Bool) -> Int {
        Set(timestamps.filter { $0.isValid && counts($0.source) }.map(\.logID)).count
    }

    package var description: String {
        let (embedded, delivered) = (logs { $0 == .certificate }, logs { $0 != .certificate })
        return "valid timestamps of \(embedded) different logs in the certificate (\(neededEmbedded) needed) and of "
            + "\(delivered) in the handshake (\(neededDelivered) would do)"
    }
}

package struct TransparencyFailure: Error, Sendable, Hashable, CustomStringConvertible {
    package let result: TransparencyResult

    package var description: String { "too few certificate timestamps (Certificate Transparency): \(result)" }
}

extension VerifiedChain {
    /// Whether enough logs have the leaf, by Chrome's policy: in the certificate two for a lifetime of up to 180 days
    /// and three above, or two from the handshake.
    /// - Parameter evidence: what the server sent beside its chain; nil: only the certificate is checked.
    package func checkTransparency(
        _ evidence: PeerEvidence?, logs: TransparencyLogs, at time: UnixTime
    ) -> Result<TransparencyResult, TransparencyFailure> {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        let check = TransparencyCheck(chain: self, logs: logs, time: time)
        var timestamps: [CertificateTimestamp] = []
        for list in [
            TimestampList(in: leaf), TimestampList(evidence?.timestamps ?? []),
            TimestampList(inResponse: evidence?.ocspResponse ?? []),
        ] {
            timestamps += check.judge(list)
        }
        let lifetime = leaf.notAfter.subtractingReportingOverflow(leaf.notBefore).partialValue
        let result = TransparencyResult(
            timestamps: timestamps, neededEmbedded: lifetime <= 180 * 86_400 ? 2 : 3, neededDelivered: 2)
        return result.isEnough ? .success(result) : .failure(TransparencyFailure(result: result))
    }
}
