import Foundation
import Testing

extension TestBed {
    /// The private number of a P-256 key file, as OpenSSL has it in memory: its lowest byte first.
    func secretOfKey(at path: String) throws -> Data {
        let pem = try String(contentsOfFile: path, encoding: .utf8)
        let der = try #require(Data(base64Encoded: pem.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()))
        // Within PKCS#8, it follows its OCTET STRING's head (RFC 5915 section 3).
        let head = try #require(der.range(of: Data([0x02, 0x01, 0x01, 0x04, 0x20])))
        return Data(der[head.upperBound..<head.upperBound + 32].reversed())
    }
}
