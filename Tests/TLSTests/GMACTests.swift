import Testing

@testable import PinproxyTLS

@Suite struct GMACTests {
    /// NIST's validation program (CAVP), gcmEncryptExtIV128, the first of 16 bytes to authenticate and none to encrypt;
    /// the first of the specification (McGrew and Viega, appendix B); IEEE 802.1AE's of 54 bytes.
    @Test(arguments: [
        (
            key: "77be63708971c4e240d1cb79e8d77feb", nonce: "e0e00f19fed7ba0136a797f3",
            message: "7a43ec1d9c0a5a78a0b16533a6213cab", tag: "209fcc8d3675ed938e9c7166709dd946"
        ),
        (
            key: "00000000000000000000000000000000", nonce: "000000000000000000000000", message: "",
            tag: "58e2fccefa7e3061367f1d57a4e7455a"
        ),
        (
            key: "ad7a2bd03eac835a6f620fdcb506b345", nonce: "12153524c0895e81b2c28465",
            message: "d609b1f056637a0d46df998d88e5222ab2c2846512153524c0895e8108000f101112131415161718191a1b1c1d1e1f20"
                + "2122232425262728292a2b2c2d2e2f30313233340001",
            tag: "f09478a9b09007d06f46e9b6a1da25dd"
        ),
    ])
    func knownTag(_ vector: (key: String, nonce: String, message: String, tag: String)) throws {
        var gmac = GMAC(key: try #require(Hexadecimal.decode(vector.key.utf8)))
        let nonce = try #require(Hexadecimal.decode(vector.nonce.utf8))
        let message = vector.message.isEmpty ? [] : try #require(Hexadecimal.decode(vector.message.utf8))
        // Each time the same: nothing is left over from the previous message.
        for _ in 0..<3 {
            #expect(Hexadecimal.encode(gmac.tag(of: message, nonce: nonce)) == vector.tag)
            _ = gmac.tag(of: [1, 2, 3], nonce: [UInt8](repeating: 9, count: 12))
        }
    }

    @Test(arguments: [0, 1, 15, 16, 17, 100, 65535, 65536, 70_000])
    func tagsAsTheCommandComputesThem(_ length: Int) throws {
        let key = (0..<16).map { UInt8($0) }
        let nonce = (0..<12).map { UInt8(200 + $0) }
        let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ $0 >> 8) }
        let options = ["-cipher", "AES-128-GCM", "-macopt", "hexkey:\(Hexadecimal.encode(key))", "-macopt"]
        let printed = try OpenSSLCommand.text(
            ["mac"] + options + ["hexiv:\(Hexadecimal.encode(nonce))", "GMAC"], input: message)
        var gmac = GMAC(key: key)
        #expect(Hexadecimal.encode(gmac.tag(of: message, nonce: nonce)).uppercased() == printed.prefix(32))
    }
}
