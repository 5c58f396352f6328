import PinproxyHTTPWire

/// Translates an HTTP/1.1 upgrade to an extended CONNECT (RFC 8441), and its answer back.
struct UpgradeByStream {
    /// As the Upgrade field names it.
    let protocolName: String
    private let handshake: WebSocketHandshake?

    init(of request: borrowing RequestView) {
        protocolName = request.head.first(.upgrade)?.text(in: request.bytes).lowercased() ?? ""
        handshake = WebSocketHandshake(of: request)
    }

    /// The text of `101 Switching Protocols` for an acceptance; nil: the origin didn't accept.
    func acceptance(_ head: ResponseHead, _ bytes: [UInt8]) -> [UInt8]? {
        guard (200..<300).contains(head.status) else { return nil }
        var text = Array("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: \(protocolName)\r\n".utf8)
        if let answer = handshake?.answer { text += "Sec-WebSocket-Accept: \(answer)\r\n".utf8 }
        for field in head.fields where field.id != .contentLength { text += bytes[field.line.offsets] }
        return text + "\r\n".utf8
    }
}
