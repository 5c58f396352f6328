import PinproxyEventLoop
import PinproxyHTTPWire
import Testing

@testable import PinproxyIsolation

@Suite struct OpeningTests {
    private func place(_ port: UInt16) -> SocketAddress {
        SocketAddress(ip: IPAddress(bytes: [192, 0, 2, 1])!, port: port)
    }

    private func vector(_ lengthBytes: Int, _ body: [UInt8]) -> [UInt8] {
        (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: body.count >> ($0 * 8)) } + body
    }

    /// A TLS hello in a record.
    private func hello(_ name: String?) -> [UInt8] {
        let serverName = name.map { [0, 0] + vector(2, vector(2, [0] + vector(2, Array($0.utf8)))) } ?? []
        let body =
            [3, 3] + [UInt8](repeating: 9, count: 32) + vector(1, []) + vector(2, [0x13, 1]) + vector(1, [0])
            + vector(2, serverName + [0, 43] + vector(2, [2, 3, 4]))
        return [22, 3, 1] + vector(2, [1] + vector(3, body))
    }

    private func tls(_ bytes: [UInt8]) -> Opening.Progress {
        var opening = Opening(at: place(443), isTLS: true)
        return opening.read(bytes.span)
    }

    private func http(_ text: String) -> Opening.Progress {
        var opening = Opening(at: place(80), isTLS: false)
        return opening.read(Array(text.utf8).span)
    }

    private func authority(_ text: String) throws -> Authority { try Authority.parse(text, defaultPort: nil).get() }

    private func cause(_ progress: Opening.Progress) -> String? {
        guard case .refused(let refusal, _) = progress else { return nil }
        return "\(refusal.host): \(refusal.cause)"
    }

    @Test func theHelloNamesTheHost() throws {
        #expect(tls(hello("API.test")) == .wants(try authority("api.test:443")))
        // As some programs send it.
        #expect(tls(hello("api.test:443")) == .wants(try authority("api.test:443")))
        #expect(tls(hello("192.0.2.1")) == .wants(try authority("192.0.2.1:443")))
        #expect(tls(hello("2001:db8::1")) == .wants(try authority("[2001:db8::1]:443")))
        let whole = hello("api.test")
        for length in 0..<whole.count { #expect(tls(Array(whole[..<length])) == .incomplete) }
    }

    @Test func aHelloThatNamesNobodyIsRefused() {
        #expect(cause(tls(hello(nil)))?.hasPrefix("192.0.2.1:443: its TLS hello names no host (SNI)") == true)
        #expect(cause(tls(hello("api.test:8443")))?.contains("api.test:8443, which is not a host on port 443") == true)
        #expect(cause(tls(hello("a@b")))?.contains("which is not a host") == true)
        #expect(cause(tls(Array("GET / HTTP/1.1\r\n".utf8)))?.contains("only TLS can be let through") == true)
        #expect(cause(tls([22, 3, 1, 0, 0]))?.contains("its TLS hello is malformed") == true)
    }

    @Test func theHostFieldNamesTheHost() throws {
        #expect(http("GET / HTTP/1.1\r\nHost: A.test\r\n\r\n") == .wants(try authority("a.test:80")))
        #expect(http("GET / HTTP/1.1\r\nHost: a.test:80\r\n\r\n") == .wants(try authority("a.test:80")))
        #expect(http("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n") == .wants(try authority("b.test:80")))
        #expect(http("GET / HTTP/1.1\r\nHost: a.te") == .incomplete)
    }

    @Test(arguments: [
        ("GET / HTTP/1.0\r\n\r\n", "names no host (Host)"),
        ("GET / HTTP/1.1\r\nHost: a.test:81\r\n\r\n", "a.test:81, which is not a host on port 80"),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "is not a host on port 80"),
        ("GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "names no host (Host)"),
        ("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "for a tunnel (CONNECT)"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "only HTTP/1 can be let through"),
        ("SSH-2.0-OpenSSH\r\n", "only HTTP/1 can be let through"),
    ])
    func aRequestThatNamesNobodyIsRefused(text: String, words: String) throws {
        let said = try #require(cause(http(text)))
        #expect(said.contains(words), "\(said)")
    }

    /// What the proxy is sent instead of the head.
    @Test func theRequestForTheProxy() throws {
        func sent(_ text: String) throws -> String {
            var opening = Opening(at: place(80), isTLS: false)
            let bytes = Array(text.utf8)
            guard case .wants(let authority) = opening.read(bytes.span) else { return "" }
            let (length, head) = opening.request(to: authority, from: bytes.span, credentials: "Basic x")
            return String(decoding: head + bytes[length...], as: UTF8.self)
        }
        #expect(
            try sent(
                """
                POST /x HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive\r\nContent-Length: \
                2\r\nProxy-Authorization: y\r\n\r\nab
                """
            )
                == """
                POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\nConnection: \
                close\r\nProxy-Authorization: Basic x\r\n\r\nab
                """
        )
        let upgrade = try sent("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        #expect(upgrade.contains("Connection: Upgrade\r\n") && !upgrade.contains("close"))
    }

    @Test func refusalsAreAnsweredInTheClientsWords() throws {
        let wanted = try authority("a.test:443")
        guard case .refused(let refusal, let alert) = Opening(at: place(443), isTLS: true).refused(wanted, "no") else {
            return
        }
        #expect(refusal == DoorRefusal(host: "a.test", cause: "no") && alert == [21, 3, 3, 0, 2, 2, 112])
        let plain = try authority("a.test:80")
        guard case .refused(let other, let text) = Opening(at: place(80), isTLS: false).refused(plain, "no") else {
            return
        }
        #expect(other.host == "a.test:80")
        #expect(String(decoding: text, as: UTF8.self).hasPrefix("HTTP/1.1 421 Misdirected Request\r\n"))
    }
}
