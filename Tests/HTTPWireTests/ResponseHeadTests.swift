import PinproxyHTTPWire
import Testing

@Suite struct ResponseHeadTests {
    @Test func aResponseIsCutIntoItsParts() throws {
        let text = "HTTP/1.1 404 Not  Found here\r\nServer: x\r\nContent-Length: 5\r\n\r\nhello"
        let parsed = response(text)
        let head = try #require(parsed.head)
        #expect(head.status == 404)
        #expect(head.reason.text(in: text) == "Not  Found here")
        #expect(head.fields.map(\.id) == [.server, .contentLength])
        #expect(
            parsed.framing?.body == .length(5) && parsed.framing?.keepsAlive == true && head.bodyLength == .known(5))
        #expect(Int(head.length) == text.utf8.count - 5)
    }

    @Test(arguments: ["HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n\r\n"])
    func theReasonMayBeMissing(_ text: String) {
        #expect(response(text).head?.status == 200)
        #expect(response(text).head?.reason.isEmpty == true)
    }

    @Test func everyPrefixIsIncomplete() {
        let bytes = Array("HTTP/1.0 301 Moved\r\nLocation: /\r\nConnection: keep-alive\r\n\r\n".utf8)
        var parser = HeadParser(limit: 1000)
        var head = ResponseHead()
        for count in 0..<bytes.count {
            let outcome = Parsed(
                parser.parseResponse(bytes.span.extracting(0..<count), to: .get, into: &head), head, parser.framing)
            #expect(outcome.isIncomplete, "\(count) bytes")
        }
        #expect(
            Parsed(parser.parseResponse(bytes.span, to: .get, into: &head), head, parser.framing).head?.status == 301)
    }

    @Test(arguments: [
        ("HTTP/1.1 20 OK", WireError.Code.statusLine), ("HTTP/1.1 2000 OK", .statusLine),
        ("HTTP/1.1 2x0 OK", .statusLine),
        ("HTTP/1.1 099 OK", .statusLine), ("HTTP/1.1  200 OK", .statusLine), ("HTTP/1.1\t200 OK", .statusLine),
        ("HTTP/1.1 200OK", .statusLine), ("HTTP/1.1", .statusLine), ("HTTP/1.", .version), ("ICY 200 OK", .version),
        ("HTTP/2 200 OK", .version), ("HTTP/2.0 200 OK", .unsupportedVersion), ("http/1.1 200 OK", .version),
        ("HTTP/1.1 200 O\u{0}K", .controlCharacter), ("", .leadingEmptyLine),
        ("HTTP/1.1 200 OK\nX: y", .bareLineFeed), ("HTTP/1.1 200 OK\rX", .bareCarriageReturn),
    ])
    func statusLinesAreStrict(_ line: String, _ defect: WireError.Code) {
        #expect(response(line + "\r\n\r\n").defect == defect)
    }

    /// RFC 9112 section 6.3, case by case.
    @Test(arguments: [
        (PinproxyHTTPWire.Method.get, 200, "", BodyFraming.untilClose, false),
        (.get, 200, "Content-Length: 0\r\n", .length(0), true),
        (.get, 200, "Content-Length: 7\r\n", .length(7), true),
        (.get, 200, "Content-Length: 7\r\nConnection: close\r\n", .length(7), false),
        (.get, 200, "Transfer-Encoding: chunked\r\n", .chunked, true),
        (.head, 200, "Content-Length: 7\r\n", .none, true),
        (.head, 200, "Transfer-Encoding: chunked\r\n", .none, true),
        (.head, 200, "", .none, true),
        (.get, 304, "Content-Length: 7\r\n", .none, true),
        (.get, 204, "", .none, true),
        (.get, 204, "Content-Length: 0\r\n", .none, true),
        (.get, 204, "Content-Length: 7\r\n", .none, false),
        (.get, 204, "Transfer-Encoding: chunked\r\n", .none, false),
        (.get, 205, "", .none, true),
        (.get, 205, "Content-Length: 0\r\n", .none, true),
        (.get, 205, "Content-Length: 7\r\n", .none, false),
        (.get, 205, "Transfer-Encoding: chunked\r\n", .none, false),
        (.head, 205, "Content-Length: 7\r\n", .none, false),
        (.get, 304, "Transfer-Encoding: chunked\r\n", .none, true),
        (.get, 200, "Content-Length: 7, 7\r\n", .length(7), true),
        (.get, 200, "Content-Length: 7\r\nContent-Length: 7\r\n", .length(7), true),
        (.get, 206, "Content-Length: 7\r\n", .length(7), true),
        (.put, 100, "", .none, true),
        (.get, 103, "Link: x\r\n", .none, true),
        (.get, 101, "Upgrade: websocket\r\nConnection: Upgrade\r\n", .none, true),
        (.connect, 200, "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n", .none, true),
        (.connect, 407, "Content-Length: 7\r\n", .length(7), true),
    ])
    func bodiesOfResponsesAreFramed(
        _ method: PinproxyHTTPWire.Method, _ status: Int, _ fields: String, _ framing: BodyFraming, _ keepsAlive: Bool
    ) {
        let parsed = response("HTTP/1.1 \(status) X\r\n\(fields)\r\n", to: method)
        #expect(parsed.framing?.body == framing && parsed.head?.bodyLength == framing.length)
        #expect(parsed.framing?.keepsAlive == keepsAlive)
    }

    @Test func http10PersistsOnlyWhenItSaysSo() {
        #expect(response("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n").framing?.keepsAlive == false)
        #expect(
            response("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n").framing?.keepsAlive
                == true)
        #expect(response("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n").framing?.keepsAlive == false)
    }

    @Test func interimAndUpgradeResponsesAreTold() {
        #expect(response("HTTP/1.1 100 Continue\r\n\r\n").head?.isInterim == true)
        #expect(response("HTTP/1.1 101 X\r\n\r\n").head?.isInterim == false)
        #expect(response("HTTP/1.1 101 X\r\n\r\n").head?.isUpgrade == true)
        #expect(response("HTTP/1.1 200 X\r\n\r\n").head?.isInterim == false)
    }

    @Test func hostFieldsOfResponsesMeanNothing() {
        #expect(response("HTTP/1.1 200 OK\r\nHost: a b\r\nHost: c\r\n\r\n").head?.fields.count == 2)
    }
}
