package import PinproxyHTTPWire
import PinproxyTLS

/// The key of a WebSocket's handshake in HTTP/1.1 (RFC 6455 section 4). HTTP/2 has no such key (RFC 8441 section 5).
package struct WebSocketHandshake: Sendable {
    private static let identifier = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// The value of Sec-WebSocket-Key.
    package let key: String

    /// Makes a new key.
    package init() {
        var random = SystemRandomNumberGenerator()
        key = Base64.encode((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }

    /// The key of a request; nil without one.
    package init?(of request: borrowing RequestView) {
        guard let key = request.bytes.value(of: "sec-websocket-key", among: request.head.fields) else { return nil }
        self.key = key
    }

    /// The value of Sec-WebSocket-Accept; nil if OpenSSL is configured without SHA-1.
    package var answer: String? { SHA1.digest(of: Array((key + Self.identifier).utf8)).map(Base64.encode) }

    /// Whether a response has the right Sec-WebSocket-Accept.
    package func isAnswered(by response: borrowing ResponseView) -> Bool {
        guard let answer else { return false }
        return response.bytes.value(of: "sec-websocket-accept", among: response.head.fields) == answer
    }
}

extension Span<UInt8> {
    /// The value of the first field with that name, in lower case.
    fileprivate func value(of name: String, among fields: [HeadField]) -> String? {
        for field in fields where field.id == .other && field.name.text(in: self).lowercased() == name {
            return field.value.text(in: self)
        }
        return nil
    }
}

extension RequestView {
    /// Whether it requests a WebSocket by the handshake of HTTP/1.1.
    package var asksForWebSocket: Bool {
        guard head.wantsUpgrade, let protocols = head.first(.upgrade) else { return false }
        return protocols.text(in: bytes).lowercased() == "websocket"
    }
}
