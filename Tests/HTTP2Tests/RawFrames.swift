import PinproxyHTTP2
import PinproxyHTTPWire

/// Hand-written frames that no honest peer sends (RFC 9113 section 4.1, RFC 7541).
enum Raw {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    static func frame(_ type: UInt8, _ flags: UInt8 = 0, _ stream: UInt32, _ payload: [UInt8] = []) -> [UInt8] {
        let length = payload.count
        return [UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255), type, flags] + number(stream)
            + payload
    }

    static func number(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) }
    }

    static func settings(_ entries: [(UInt16, UInt32)] = []) -> [UInt8] {
        frame(4, 0, 0, entries.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 255)] + number($0.1) })
    }

    static let settingsAck = frame(4, 1, 0)
    /// Flags of HEADERS.
    static let (endStream, endHeaders): (UInt8, UInt8) = (1, 4)

    static func headers(
        _ stream: UInt32, _ fields: [(String, String)], flags: UInt8 = endStream | endHeaders
    )
        -> [UInt8]
    {
        frame(1, flags, stream, fields.flatMap { literal($0.0, $0.1) })
    }

    static func data(_ stream: UInt32, _ text: String, ends: Bool = false) -> [UInt8] {
        frame(0, ends ? 1 : 0, stream, Array(text.utf8))
    }
    static func reset(_ stream: UInt32, _ code: UInt32 = 8) -> [UInt8] { frame(3, 0, stream, number(code)) }
    static func windowUpdate(_ stream: UInt32, _ increment: UInt32) -> [UInt8] {
        frame(8, 0, stream, number(increment))
    }
    static func ping(ack: Bool = false) -> [UInt8] { frame(6, ack ? 1 : 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]) }

    /// A literal without indexing, and without Huffman coding.
    static func literal(_ name: String, _ value: String, form: UInt8 = 0) -> [UInt8] {
        [form] + length(name.utf8.count) + Array(name.utf8) + length(value.utf8.count) + Array(value.utf8)
    }

    /// An integer with a prefix of seven bits (RFC 7541 section 5.1).
    static func length(_ value: Int) -> [UInt8] {
        if value < 127 { return [UInt8(value)] }
        var bytes: [UInt8] = [127]
        var rest = value - 127
        while rest >= 128 {
            bytes.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    static let get = [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")]
    static func request(
        _ stream: UInt32, _ more: [(String, String)] = [], flags: UInt8 = endStream | endHeaders
    )
        -> [UInt8]
    {
        headers(stream, get + more, flags: flags)
    }

    /// A client's connection preface, with or without acknowledging settings.
    static func client(acknowledges: Bool = true) -> [UInt8] {
        preface + settings() + (acknowledges ? settingsAck : [])
    }
}

extension Peer {
    /// A server that has received the connection preface.
    static func server(settings: HTTP2Settings = HTTP2Settings(), limits: HTTP2Limits = HTTP2Limits()) throws -> Peer {
        let peer = try Peer(.server, settings: settings, limits: limits)
        _ = peer.collect()
        peer.receive(Raw.client())
        _ = peer.collect()
        peer.received = []
        return peer
    }

    /// A client that has sent its preface and requests with these methods.
    static func client(_ methods: [String] = ["GET"], limits: HTTP2Limits = HTTP2Limits()) throws -> Peer {
        let peer = try Peer(.client, limits: limits)
        for name in methods {
            let isTunnel = name == "CONNECT"
            let head = isTunnel ? block([":method": "CONNECT", ":authority": "a.test:443"]) : request(name)
            guard let stream = peer.session.submitRequest(head, hasBody: isTunnel) else { continue }
            peer.methods[stream] = Method.allCases.first { $0.text == name }
        }
        _ = peer.collect()
        peer.receive(Raw.settings() + Raw.settingsAck)
        _ = peer.collect()
        peer.received = []
        return peer
    }
}

/// A sent frame, in the parts that tests examine.
struct SentFrame: Equatable {
    let kind: FrameHeader.Kind
    let flags: UInt8
    let stream: Int32
    let payload: [UInt8]

    /// The error code of RST_STREAM and GOAWAY.
    var code: HTTP2ErrorCode {
        let bytes = kind == .goAway ? payload[4..<8] : payload[0..<4]
        return HTTP2ErrorCode(rawValue: bytes.reduce(0) { $0 << 8 | UInt32($1) })
    }

    static func all(in bytes: [UInt8], afterPreface: Bool = false) -> [SentFrame] {
        var scanner = FrameScanner(awaitsPreface: afterPreface)
        var frames: [SentFrame] = []
        var header: FrameHeader?
        var position = 0
        while position < bytes.count {
            var payload: [UInt8] = []
            switch scanner.next(in: bytes.span, from: position) {
            case .partialHeader(let count): position += count
            case .header(let found, let count):
                header = found
                position += count
                if found.length > 0 { continue }
            case .payload(let count, _):
                payload = Array(bytes[position..<position + count])
                position += count
            }
            if let header {
                frames.append(
                    SentFrame(kind: header.kind, flags: header.flags, stream: header.stream, payload: payload))
            }
        }
        return frames
    }
}
