import Testing

@testable import EventLoop

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::", "::"), ("::1", "::1"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("2001:db8::1:0:0:1", "2001:db8::1:0:0:1"), ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        ("::FFFF:c000:201", "::ffff:192.0.2.1"), ("fe80::0a:0", "fe80::a:0"),
    ])
    func `text is read and written canonically`(text: String, canonical: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == canonical)
        #expect(IPAddress(address.description) == address)
        #expect(IPAddress(bytes: address.bytes) == address)
        #expect(address.bytes.count == (address.isIPv6 ? 16 : 4))
    }

    @Test(arguments: [
        "", "1.2.3", "127.1", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", " 1.2.3.4", "0x7f.0.0.1", "[::1]", "::1%lo", "fe80::1%1", ":::", "1::2::3", "12345::",
        "::ffff:1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18", "localhost",
    ])
    func `anything else is not an address`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func `a NUL doesn't end the text`() {
        #expect(IPAddress("1.2.3.4\0") == nil)
        #expect(IPAddress("127.0.0.1\0.example.test") == nil)
    }

    @Test func `bytes are in network order`() throws {
        #expect(try #require(IPAddress("1.2.3.4")).bytes == [1, 2, 3, 4])
        #expect(
            try #require(IPAddress("102:304:506:708:90a:b0c:d0e:f10")).bytes
                == Array(1...16))
        #expect(IPAddress(bytes: [1, 2, 3]) == nil)
    }

    @Test func `the families are never equal`() throws {
        let v4 = try #require(IPAddress("0.0.0.1"))
        let v6 = try #require(IPAddress("::1"))
        #expect(v4 != v6)
        #expect(!v4.isIPv6 && v6.isIPv6)
    }

    @Test func `a socket address survives the way through C`() throws {
        for text in ["192.0.2.7", "2001:db8::7"] {
            let address = SocketAddress(ip: try #require(IPAddress(text)), port: 8443)
            #expect(address.withSockaddr { pointer, _ in SocketAddress(pointer) } == address)
        }
        #expect(SocketAddress(ip: try #require(IPAddress("192.0.2.7")), port: 80).description == "192.0.2.7:80")
        #expect(SocketAddress(ip: try #require(IPAddress("::1")), port: 80).description == "[::1]:80")
    }
}
