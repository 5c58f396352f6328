import PinproxyHTTP2
import PinproxyHTTPWire

/// One side of a connection in memory: a session with its bodies, and what it has received.
final class Peer: HTTP2Outlet {
    /// A body to send: the available bytes, and whether these are the last.
    struct Body {
        var bytes: [UInt8] = []
        var isLast = false
        var trailers: FieldBlock?
    }

    let session: HTTP2Session
    var sent: [UInt8] = []
    /// Bytes that the outlet takes until `sent` is collected.
    var room = Int.max
    var bodies: [HTTP2StreamID: Body] = [:]
    var received: [Seen] = []
    /// The streams of sent body data, frame by frame.
    var order: [HTTP2StreamID] = []
    /// Whether windows are returned as data is taken.
    var consumes = true
    /// Methods of a client's requests.
    var methods: [HTTP2StreamID: Method] = [:]

    /// An event in a comparable form.
    enum Seen: Equatable {
        case head(Int32, String, ends: Bool, body: BodyLength)
        case refused(Int32, String)
        case data(Int32, [UInt8])
        case trailers(Int32, String)
        case ended(Int32)
        case reset(Int32, HTTP2ErrorCode)
        case malformed(Int32, HTTP2Defect)
        case windowOpened(Int32?)
        case goAway(Int32, HTTP2ErrorCode, String)
        case settings
        case pong(UInt64)
        case priority(Int32, HTTP2Priority)
        case failed(HTTP2ErrorCode)
    }

    init(
        _ role: HTTP2Session.Role, settings: HTTP2Settings = HTTP2Settings(), limits: HTTP2Limits = HTTP2Limits()
    )
        throws
    {
        session = try HTTP2Session(role, settings: settings, limits: limits)
    }

    /// What was received, without settings and windows of the connection.
    var ofStreams: [Seen] { received.filter { $0 != .settings && $0 != .windowOpened(nil) } }

    // MARK: In

    func receive(_ bytes: [UInt8], at now: UInt64 = 0) {
        var start = 0
        while start < bytes.count {
            let rest = Array(bytes[start...])
            let count = session.receive(rest.span, at: now)
            takeEvents(rest)
            start += count
        }
    }

    func takeEvents(_ bytes: [UInt8] = []) {
        while let event = session.nextEvent() { take(event, bytes) }
    }

    private func take(_ event: HTTP2Event, _ bytes: [UInt8]) {
        switch event {
        case .request(let stream, let place, let ends):
            var (head, text) = (RequestHead(), [UInt8]())
            let progress = session.readRequest(place, into: &head, bytes: &text)
            note(stream, progress, text, ends, head.bodyLength)
        case .response(let stream, let place, let ends):
            var (head, text) = (ResponseHead(), [UInt8]())
            let progress = session.readResponse(place, to: methods[stream] ?? .get, into: &head, bytes: &text)
            note(stream, progress, text, ends, head.bodyLength)
        case .data(let stream, let range):
            add(.data(stream.rawValue, Array(bytes[range])))
            guard consumes else { return }
            session.consumed(range.count, of: stream)
            session.consumedOfConnection(range.count)
        case .trailers(let stream, let section):
            add(.trailers(stream.rawValue, String(decoding: section.lines, as: UTF8.self)))
        case .ended(let stream): add(.ended(stream.rawValue))
        case .reset(let stream, let code): add(.reset(stream.rawValue, code))
        case .malformed(let stream, let defect): add(.malformed(stream.rawValue, defect))
        case .windowOpened(let stream): add(.windowOpened(stream?.rawValue))
        case .goAway(let last, let code, let debug): add(.goAway(last.rawValue, code, debug))
        case .settings: add(.settings)
        case .pong(let opaque): add(.pong(opaque))
        case .priority(let stream, let priority): add(.priority(stream.rawValue, priority))
        case .failed(let code, _): add(.failed(code))
        }
    }

    private func note(
        _ stream: HTTP2StreamID, _ progress: HeadProgress, _ text: [UInt8], _ ends: Bool, _ body: BodyLength
    ) {
        if case .complete = progress {
            add(.head(stream.rawValue, String(decoding: text, as: UTF8.self), ends: ends, body: body))
        } else {
            add(.refused(stream.rawValue, "\(progress)"))
        }
    }

    /// Consecutive pieces of data are joined, however they were split.
    private func add(_ seen: Seen) {
        if case .data(let stream, let more) = seen, case .data(stream, let before)? = received.last {
            received[received.count - 1] = .data(stream, before + more)
        } else {
            received.append(seen)
        }
    }

    // MARK: Out

    /// Returns what the session sends now.
    func collect() -> [UInt8] {
        session.send(through: self)
        takeEvents()
        defer { sent = [] }
        return sent
    }

    func say(_ stream: HTTP2StreamID, _ text: String, isLast: Bool = true, trailers: FieldBlock? = nil) {
        bodies[stream, default: Body()].bytes += text.utf8
        bodies[stream]?.isLast = isLast
        bodies[stream]?.trailers = trailers
        session.resume(stream)
    }

    var hasRoom: Bool { room - sent.count >= 16_393 }

    func write(_ bytes: RawSpan) { bytes.withUnsafeBytes { sent.append(contentsOf: $0) } }

    func available(of stream: HTTP2StreamID, most: Int) -> (count: Int, isLast: Bool) {
        guard let body = bodies[stream] else { return (0, false) }
        let count = min(most, body.bytes.count)
        return (count, body.isLast && count == body.bytes.count)
    }

    func writeBody(_ count: Int, of stream: HTTP2StreamID) {
        sent += bodies[stream]?.bytes.prefix(count) ?? []
        bodies[stream]?.bytes.removeFirst(count)
        order.append(stream)
    }

    func trailers(of stream: HTTP2StreamID) -> FieldBlock? { bodies[stream]?.trailers }
}

/// Two connected sides.
struct Pair {
    let client: Peer
    let server: Peer

    init(
        client clientSettings: HTTP2Settings = HTTP2Settings(), server serverSettings: HTTP2Settings = HTTP2Settings(),
        limits: HTTP2Limits = HTTP2Limits()
    ) throws {
        client = try Peer(.client, settings: clientSettings, limits: limits)
        server = try Peer(.server, settings: serverSettings, limits: limits)
    }

    /// Passes bytes on until neither side has any.
    func exchange() {
        while true {
            let (up, down) = (client.collect(), server.collect())
            if up.isEmpty, down.isEmpty { return }
            server.receive(up)
            client.receive(down)
        }
    }

    /// What each side has seen of streams.
    var events: (client: [Peer.Seen], server: [Peer.Seen]) { (client.ofStreams, server.ofStreams) }
}

/// A field section, its fields in order.
func block(_ fields: KeyValuePairs<StaticString, String>) -> FieldBlock {
    var block = FieldBlock()
    for (name, value) in fields { block.append(name, value) }
    return block
}

func request(_ method: String = "GET", _ path: String = "/") -> FieldBlock {
    block([":method": method, ":scheme": "https", ":authority": "a.test", ":path": path])
}

func response(_ status: Int = 200) -> FieldBlock { block([":status": "\(status)"]) }
