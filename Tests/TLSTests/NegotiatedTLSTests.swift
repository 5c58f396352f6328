import Testing

@testable import PinproxyTLS

/// The text for a handshake's parameters.
@Suite struct NegotiatedTLSTests {
    @Test(arguments: [
        (0xC02F, "ECDHE-RSA-AES128-GCM-SHA256"), (0x1301, "TLS_AES_128_GCM_SHA256"), (0x009C, "AES128-GCM-SHA256"),
        (0xFFFE, "0xFFFE"), (0, "0x0"),
    ])
    func aSuiteHasOpenSSLsName(suite: UInt16, name: String) {
        #expect(NegotiatedTLS(version: .tls12, suite: suite).cipher == name)
    }

    /// A failed look-up leaves no error for the next call to find.
    @Test func namingLeavesNoErrors() {
        _ = try? Certificate(der: [0x30])
        #expect(NegotiatedTLS(version: .tls12, suite: 0xFFFE).description == "TLS 1.2, 0xFFFE")
        #expect(OpenSSLErrorQueue.take() == 0)
    }
}
