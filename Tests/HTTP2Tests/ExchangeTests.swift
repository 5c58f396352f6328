import HTTP2
import HTTPWire
import Testing

/// Requests and responses between two sessions.
@Suite struct ExchangeTests {
    @Test func `A request and its response`() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.server.session.submitResponse(stream, response(), hasBody: true)
        pair.server.say(stream, "hello")
        pair.exchange()
        #expect(
            pair.events.server.filter { $0 != .windowOpened(nil) } == [
                .head(1, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ends: true, body: .none)
            ])
        #expect(
            pair.events.client.filter { $0 != .windowOpened(nil) } == [
                .head(1, "HTTP/1.1 200 \r\n\r\n", ends: false, body: .unknown), .data(1, Array("hello".utf8)), .ended(1),
            ])
        #expect(pair.client.session.openStreams == 0)
        #expect(pair.server.session.openStreams == 0)
    }
}
