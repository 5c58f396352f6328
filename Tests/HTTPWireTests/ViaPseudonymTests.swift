import Testing

@testable import PinproxyHTTPWire

@Suite struct ViaPseudonymTests {
    private let own = ViaPseudonym(token: 0x0123_4567_89ab_cdef)

    private func parsed(_ fields: String, _ check: (RequestHead, Span<UInt8>) -> Bool) -> Bool {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n".utf8)
        var parser = HeadParser(limit: 1 << 16)
        var head = RequestHead()
        guard case .complete = parser.parseRequest(bytes.span, into: &head) else { return false }
        return check(head, bytes.span)
    }

    @Test func itIsAToken() {
        #expect(own.description == "pinproxy-0123456789abcdef")
        #expect(ViaPseudonym(token: 0).description == "pinproxy-0000000000000000")
        #expect(ViaPseudonym(token: .max).description == "pinproxy-ffffffffffffffff")
    }

    @Test(arguments: [
        "Via: 1.1 pinproxy-0123456789abcdef\r\n", "Via: 1.0 a, 1.1 PINPROXY-0123456789ABCDEF (x), 1.1 b\r\n",
        "Via: 1.1 a\r\nX: y\r\nvia: HTTP/1.1 pinproxy-0123456789abcdef:80\r\nVia: 1.1 b\r\n",
        "Via: ,, \t1.1\tpinproxy-0123456789abcdef,\r\n",
    ]) func aRequestThatHasPassedIsKnown(fields: String) {
        #expect(parsed(fields) { $0.hasPassed(own, in: $1) })
    }

    @Test(arguments: [
        "", "Via: 1.1 pinproxy\r\n", "Via: 1.1 pinproxy-0123456789abcdee\r\n", "X: 1.1 pinproxy-0123456789abcdef\r\n",
        "Via: 1.1 pinproxy-0123456789abcde\r\n", "Via:\r\n",
    ]) func othersAreNot(fields: String) {
        #expect(parsed(fields) { head, bytes in !head.hasPassed(own, in: bytes) })
    }

    @Test func theHopsAreOneList() {
        #expect(parsed("Via: 1.0 a, 1.1 b\r\nVia: \r\nVia: 1.1 c\r\n") { $0.via(in: $1) == "1.0 a, 1.1 b, 1.1 c" })
        #expect(parsed("Via:\r\n") { $0.via(in: $1) == nil })
        #expect(parsed("") { $0.via(in: $1) == nil })
    }
}
