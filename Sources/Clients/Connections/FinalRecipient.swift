import PinproxyHTTPWire

/// The answer to TRACE or OPTIONS with Max-Forwards: 0 (RFC 9110 section 7.6.2).
enum FinalRecipient {
    static func answer(to request: RequestHead, _ bytes: Span<UInt8>, keepsConnection: Bool) -> [UInt8] {
        var head = ResponseText(status: 200, reason: "OK")
        if request.method == .trace {
            var received: [UInt8] = []
            HeadWriter.reflect(request: request, from: bytes, into: &received)
            head.addBody(type: "message/http", count: received.count, keepAlive: keepsConnection)
            return head.bytes(with: received)
        }
        head.add("Allow", Method.allCases.filter { $0 != .other }.map(\.text).joined(separator: ", "))
        head.add("Content-Length", "0")
        head.add("Connection", keepsConnection ? "keep-alive" : "close")
        return head.bytes(with: [])
    }
}
