import Testing

@testable import PinproxyTLS

/// What a handshake has agreed on, in words.
@Suite struct NegotiatedTLSTests {
    @Test(arguments: [
        (0xC02F, "ECDHE-RSA-AES128-GCM-SHA256"), (0x1301, "TLS_AES_128_GCM_SHA256"), (0x009C, "AES128-GCM-SHA256"),
        (0xFFFE, "0xFFFE"), (0, "0x0"),
    ])
    func aSuiteHasOpenSSLsName(suite: UInt16, name: String) {
        #expect(NegotiatedTLS(version: .tls12, suite: suite).cipher == name)
    }

    /// A look-up that fails leaves nothing for the next call to find.
    @Test func namingLeavesNoErrors() {
        _ = try? Certificate(der: [0x30])
        #expect(NegotiatedTLS(version: .tls12, suite: 0xFFFE).description == "TLS 1.2, 0xFFFE")
        #expect(OpenSSLErrorQueue.take() == 0)
    }
}
