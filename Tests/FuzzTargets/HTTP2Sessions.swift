import PinproxyHTTP2
import PinproxyHTTPWire

/// HTTP/2 sessions on either side: the peer's bytes, with commands in between.
///
/// An input ends with choices: whether a connection preface precedes it, how it is split, and commands.
enum HTTP2Sessions {
    private static let commandCount = 8

    static func server(_ bytes: [UInt8]) { run(bytes, .server) }
    static func client(_ bytes: [UInt8]) { run(bytes, .client) }

    private static func run(_ bytes: [UInt8], _ role: HTTP2Session.Role) {
        var choices = Choices(bytes, count: 3 + commandCount)
        let (style, seed, room) = (choices.byte(), choices.byte(), choices.byte())
        let commands = (0..<commandCount).map { _ in choices.byte() }
        let input = (style & 1 == 0 ? [] : beginning(role)) + choices.input
        if style & 2 == 0 {
            let whole = HTTP2End(role, commands: [], room: .max)
            whole.take(input)
            whole.pump()
            let cut = HTTP2End(role, commands: [], room: .max)
            var cuts = Cuts(seed: seed)
            var start = 0
            while start < input.count {
                let end = min(input.count, start + cuts.next())
                cut.take(Array(input[start..<end]))
                start = end
            }
            cut.pump()
            require(
                whole.watch.seen == cut.watch.seen,
                "bytes mean the same, however they are cut: \(whole.watch.seen), \(cut.watch.seen)")
        } else {
            let end = HTTP2End(role, commands: commands, room: room & 1 == 0 ? .max : 20_000)
            var cuts = Cuts(seed: seed)
            var start = 0
            while start < input.count {
                let next = min(input.count, start + cuts.next())
                end.take(Array(input[start..<next]))
                if style & 4 == 0 { end.pump() }
                start = next
            }
            for _ in 0..<20 { end.pump() }
            end.finish()
        }
    }

    /// What the peer of a session with this role sends first.
    static func beginning(_ role: HTTP2Session.Role) -> [UInt8] {
        let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0]
        return role == .server ? Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + settings : settings
    }
}

/// A session with its commands and bodies.
private final class HTTP2End: HTTP2Outlet {
    let session: HTTP2Session
    var watch: HTTP2Watch
    private var out: [UInt8] = []
    private let room: Int
    private let commands: [UInt8]
    private var next = 0
    private var block = FieldBlock()
    /// The number of body bytes left to send.
    private var bodies: [HTTP2StreamID: Int] = [:]
    private var now: UInt64 = 0

    init(_ role: HTTP2Session.Role, commands: [UInt8], room: Int) {
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = 10
        settings.maxHeaderListSize = 2048
        settings.initialWindow = 1000
        settings.enablesConnectProtocol = true
        var limits = HTTP2Limits()
        limits.headText = 8192
        limits.events = 64
        guard let session = try? HTTP2Session(role, settings: settings, limits: limits) else { fatalError("no memory") }
        self.session = session
        self.commands = commands
        self.room = room
        watch = HTTP2Watch(role, limits, headerList: settings.maxHeaderListSize)
        pump()
        guard role == .client else { return }
        for method in ["GET", "POST", "HEAD", "CONNECT"] { open(method) }
        pump()
    }

    private func open(_ method: String) {
        block.clear()
        block.append(":method", method)
        if method != "CONNECT" {
            block.append(":scheme", "https")
            block.append(":path", "/")
        }
        block.append(":authority", "a.test:443")
        let hasBody = method == "POST" || method == "CONNECT"
        guard let stream = session.submitRequest(block, hasBody: hasBody) else { return }
        if hasBody { bodies[stream] = 3000 }
        watch.opened(stream, Method.allCases.first { $0.text == method } ?? .other)
    }

    func take(_ bytes: [UInt8]) {
        var start = 0
        while start < bytes.count {
            now += 1_000_000
            let rest = Array(bytes[start...])
            let count = session.receive(rest.span, at: now)
            require(count > 0 && count <= rest.count, "a session takes some bytes, and no more than there are")
            takeEvents(rest)
            start += count
        }
    }

    private func takeEvents(_ bytes: [UInt8]) {
        var count = 0
        while let event = session.nextEvent() {
            count += 1
            watch.take(event, bytes, of: session)
            // A peer that overflows its window may overflow it by less if some is returned between two pieces.
            if case .data(let stream, let range) = event, !commands.isEmpty {
                session.consumed(range.count, of: stream)
                session.consumedOfConnection(range.count)
            }
            if let stream = event.stream { command(stream) }
        }
        watch.took(count)
    }

    func pump() {
        session.send(through: self)
        takeEvents([])
        watch.sent(out)
        out = []
    }

    /// A failed session is finished once its GOAWAY is sent.
    func finish() {
        guard watch.hasFailed else { return }
        require(!session.wantsToSend && !session.wantsToLive, "a session that has failed has nothing left to do")
        require(session.isGoingAway, "a session that has failed takes no streams")
    }

    // MARK: Commands

    private func command(_ stream: HTTP2StreamID) {
        guard next < commands.count else { return }
        let command = commands[next]
        next += 1
        let reply = Int(command >> 4)
        block.clear()
        switch command & 15 {
        case 1, 2, 3:
            block.append(":status", "\(200 + reply)")
            block.append("x-long", String(repeating: "y", count: reply * 300))
            if command & 15 > 1 { bodies[stream] = reply * 5000 }
            session.submitResponse(stream, block, hasBody: command & 15 > 1)
        case 4:
            block.append(":status", "103")
            session.submitInterim(stream, block)
        case 5: session.reset(stream, HTTP2ErrorCode(rawValue: UInt32(reply)))
        case 6: session.abandonRequest(stream)
        case 7: session.resume(stream)
        case 8: session.setPriority(HTTP2Priority(urgency: UInt8(reply & 7), isIncremental: reply > 7), of: stream)
        case 9: session.growStreamWindow(to: 1000 * reply)
        case 10: session.growConnectionWindow(to: 65_535 + 1000 * reply)
        case 11: session.ping(UInt64(reply))
        case 12: session.announceGoAway()
        case 13: session.goAway(reply == 0 ? .noError : .internalError)
        case 14: if session.takesRequests { open("POST") }
        default: session.consumedOfConnection(0)
        }
        let isOver = command & 15 == 5
        if isOver { watch.ended(stream) }
        if command & 15 == 6 { watch.abandoned(stream) }
    }

    // MARK: HTTP2Outlet

    var hasRoom: Bool { room - out.count >= 16_393 }

    func write(_ bytes: RawSpan) { bytes.withUnsafeBytes { out.append(contentsOf: $0) } }

    func available(of stream: HTTP2StreamID, most: Int) -> (count: Int, isLast: Bool) {
        guard let left = bodies[stream] else { return (0, false) }
        return (min(left, most), left <= most)
    }

    func writeBody(_ count: Int, of stream: HTTP2StreamID) {
        out.append(contentsOf: repeatElement(0x61, count: count))
        bodies[stream, default: 0] -= count
        require(bodies[stream, default: 0] >= 0, "no more of a body is sent than there is")
    }

    func trailers(of stream: HTTP2StreamID) -> FieldBlock? {
        guard stream.rawValue & 4 == 0 else { return nil }
        var block = FieldBlock()
        block.append("x-trailer", "z")
        return block
    }
}
