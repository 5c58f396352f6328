import Foundation
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration
@testable import PinproxyRecords
@testable import PinproxySecurity
@testable import PinproxySession

/// The contents of a report, and the request that carries it, without a network.
@Suite struct PinReportFormTests {
    private static let now = CertificateTemplate.now
    private static let fingerprint = "cert-sha256/" + String(repeating: "00", count: 32)
    private static let wrong = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func refusal(_ policy: SecurityPolicy) throws -> Refusal {
        let root = try HeldCertificate.selfSigned(.root("Root"))
        let leaf = try root.issue(.leaf("api.test"))
        let presented = PresentedChain(leaf: try Certificate(der: leaf.der))
        let verdict = policy.evaluate(
            presented, host: .dns("api.test"), anchors: TrustAnchors([try Certificate(der: root.der)]), at: Self.now)
        return try #require(verdict.report ?? verdict.refusal)
    }

    private func report(
        _ policy: SecurityPolicy, _ circumstances: Circumstances = Circumstances(), pattern: String = "api.test"
    ) throws -> [String: Any]? {
        let entry = HostEntry(
            for: try HostPattern(pattern), action: .intercept, policy: policy, file: "pins.yaml", line: 1, column: 1)
        let report = PinReport(
            try refusal(policy), host: "api.test", port: 443, entry: entry, circumstances, at: Self.now)
        return try report.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.json)) as? [String: Any])
        }
    }

    @Test func pinsAreDirectivesOfTheirKinds() throws {
        let pins = [
            try Pin(text: Self.wrong, for: .publicKey), try Pin(text: Self.fingerprint, for: .certificate),
            try Pin(text: "3 0 1 " + String(repeating: "00", count: 32), for: .certificate),
        ]
        let zeros = Self.wrong.dropFirst(7)
        let json = try report(SecurityPolicy(mode: .publicKey, pins: PinSet(pins)))
        #expect(
            json?["known-pins"] as? [String] == [
                "pin-sha256=\"\(zeros)\"", "pin-cert-sha256=\"\(zeros)\"",
                "pin-tlsa=\"3 0 1 \(String(repeating: "00", count: 32))\"",
            ])
        #expect(json?["date-time"] as? String == "2030-01-01T00:00:00Z")
        #expect((json?["served-certificate-chain"] as? [String])?.count == 1)
        #expect((json?["validated-certificate-chain"] as? [String])?.count == 2)
    }

    /// Transient details, such as ports and processes, are not for the collector.
    @Test func theConnectionAndTheClientAreDescribed() throws {
        let pins = PinSet([try Pin(text: Self.wrong, for: .publicKey)])
        let address = SocketAddress(ip: try #require(IPAddress("192.0.2.1")), port: 443)
        let contact = OriginContact(
            address: address, answer: AddressAnswer([address.ip], from: NameSource(.hostsFile)),
            tls: NegotiatedTLS(version: .tls13, cipher: "TLS_AES_128_GCM_SHA256", group: "x25519"))
        let traits = ClientTraits(user: 1000, userName: "build", process: 7, executable: "/bin/x", unit: "ci.service")
        let requester = Requester(task: 5, client: .network(address), traits: traits)
        let json = try #require(
            try report(SecurityPolicy(mode: .publicKey, pins: pins), Circumstances(contact, requester)))
        #expect(
            json["connection"] as? NSDictionary == [
                "address": "192.0.2.1:443", "resolved": ["192.0.2.1"], "resolver": "hosts file",
                "tls-version": "TLS 1.3", "cipher": "TLS_AES_128_GCM_SHA256", "tls-group": "x25519",
            ])
        #expect(
            json["client"] as? NSDictionary == [
                "uid": 1000, "user": "build", "program": "/bin/x", "unit": "ci.service",
            ])
        #expect(json["task"] as? Int == 5)
    }

    @Test(arguments: [
        ("api.test", "api.test", false), ("*.test", "test", true), ("**.api.test", "api.test", true),
        ("api.test:443", "api.test", false),
    ]) func aPatternIsANotedHost(pattern: String, noted: String, subdomains: Bool) throws {
        let json = try report(
            SecurityPolicy(mode: .publicKey, pins: PinSet([try Pin(text: Self.wrong, for: .publicKey)])),
            pattern: pattern)
        #expect(json?["noted-hostname"] as? String == noted)
        #expect(json?["include-subdomains"] as? Bool == subdomains)
    }

    /// Pins that weren't compared with the chain can't have failed it.
    @Test func anExpiredEntryAndAnUntrustedChainAreNoPinFailures() throws {
        let pins = PinSet([try Pin(text: Self.wrong, for: .publicKey)])
        #expect(
            try report(SecurityPolicy(mode: .publicKey, pins: pins, expiry: PinExpiry(date: Self.now, action: .deny)))
                == nil)
        #expect(try report(SecurityPolicy(mode: .publicKey)) == nil)
    }

    private func request(_ uri: String, parent: ParentProxy? = nil) throws -> String {
        let upstream = UpstreamSettings(anchors: TrustAnchors([]), parent: parent)
        let uri = try #require(try? ServiceURL.parse(uri, example: "", purpose: "").get())
        let request = try ServiceRequest(
            uri, fields: [("Content-Type", "application/json")], body: Array("{}".utf8), upstream: upstream)
        // According to the connection made for the target.
        let hop = request.target.key.layer == .plain ? parent.map(ParentHop.init) : nil
        var head: [UInt8] = []
        let view = request.message.view
        HeadWriter.write(
            request: view.head, from: view.bytes, target: hop == nil ? .originForm : .absoluteForm,
            authority: request.authority, defaultPort: uri.isSecure ? 443 : 80, via: nil, forwardUpgrade: false,
            edits: hop?.edits ?? HeadEdits(), into: &head)
        return String(decoding: head + request.body, as: UTF8.self)
    }

    @Test(arguments: [
        ("https://reports.test/pins?a=b", "POST /pins?a=b HTTP/1.1", "reports.test"),
        ("https://reports.test:8443", "POST / HTTP/1.1", "reports.test:8443"),
        ("http://reports.test:443/", "POST / HTTP/1.1", "reports.test:443"),
        ("http://[2001:db8::1]:8080/x", "POST /x HTTP/1.1", "[2001:db8::1]:8080"),
    ]) func theRequestIsForTheCollector(uri: String, line: String, host: String) throws {
        let text = try request(uri)
        #expect(text.hasPrefix(line + "\r\nHost: \(host)\r\n"), "\(text)")
        #expect(text.contains("\r\nContent-Length: 2\r\n"))
        #expect(text.hasSuffix("\r\n\r\n{}"))
    }

    /// A parent proxy sees the whole request in the clear, and nothing of it under TLS.
    @Test func aParentProxyGetsItsCredentialsAndNobodyElseDoes() throws {
        let parent = ParentProxy(host: "parent.test", port: 3128, authorization: "Basic dTpw")
        let plain = try request("http://reports.test/pins", parent: parent)
        #expect(plain.hasPrefix("POST http://reports.test/pins HTTP/1.1\r\n"), "\(plain)")
        #expect(plain.contains("\r\nProxy-Authorization: Basic dTpw\r\n"))
        let secure = try request("https://reports.test/pins", parent: parent)
        #expect(secure.hasPrefix("POST /pins HTTP/1.1\r\n"), "\(secure)")
        #expect(!secure.contains("Proxy-Authorization"))
    }
}
