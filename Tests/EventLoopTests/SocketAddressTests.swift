import Testing

@testable import PinproxyEventLoop

@Suite struct SocketAddressTests {
    @Test func aSocketAddressSurvivesTheWayThroughC() throws {
        for text in ["192.0.2.7", "2001:db8::7"] {
            let address = SocketAddress(ip: try #require(IPAddress(text)), port: 8443)
            #expect(address.withSockaddr { pointer, _ in SocketAddress(pointer) } == address)
        }
        #expect(SocketAddress(ip: try #require(IPAddress("192.0.2.7")), port: 80).description == "192.0.2.7:80")
        #expect(SocketAddress(ip: try #require(IPAddress("::1")), port: 80).description == "[::1]:80")
    }
}
