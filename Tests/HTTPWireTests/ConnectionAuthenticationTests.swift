import PinproxyHTTPWire
import Testing

@Suite struct ConnectionAuthenticationTests {
    @Test(arguments: [
        ("Authorization: NTLM TlRMTVNTUAAB", true), ("authorization: negotiate YII=", true),
        ("Authorization: Basic dTpw", false), ("Authorization: NTLMv3 x", false), ("X-Authorization: NTLM x", false),
        ("Authorization: Bearer NTLM", false),
    ])
    func credentialsOfAConnectionAreKnown(field: String, isBound: Bool) throws {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a.test\r\n\(field)\r\n\r\n".utf8)
        var parser = HeadParser(limit: 4096)
        var head = RequestHead()
        let progress = parser.parseRequest(bytes.span, into: &head)
        guard case .complete = progress else {
            Issue.record("\(progress)")
            return
        }
        #expect(head.authenticatesConnection(in: bytes.span) == isBound)
    }

    @Test(arguments: [
        ("401 Unauthorized", "WWW-Authenticate: Basic realm=x\r\nWWW-Authenticate: NTLM", true),
        ("401 Unauthorized", "WWW-Authenticate: Negotiate, Basic realm=x", true),
        ("401 Unauthorized", "WWW-Authenticate: Basic realm=x, ntlm", true),
        ("401 Unauthorized", "WWW-Authenticate: Basic realm=x,Negotiate,\tDigest realm=y", true),
        ("401 Unauthorized", "WWW-Authenticate: Basic realm=NTLM", false),
        ("401 Unauthorized", "WWW-Authenticate: XNTLM, negotiates", false), ("200 OK", "WWW-Authenticate: NTLM", false),
    ])
    func challengesToAConnectionAreKnown(status: String, fields: String, isBound: Bool) throws {
        let bytes = Array("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\(fields)\r\n\r\n".utf8)
        var parser = HeadParser(limit: 4096)
        var head = ResponseHead()
        let progress = parser.parseResponse(bytes.span, to: .get, into: &head)
        guard case .complete = progress else {
            Issue.record("\(progress)")
            return
        }
        #expect(head.authenticatesConnection(in: bytes.span) == isBound)
    }
}
