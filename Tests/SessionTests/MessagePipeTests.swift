import Glibc
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport
import Testing

@testable import PinproxySession

/// A kind of body, and how it should arrive.
struct Passage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let framing: BodyFraming
    /// Whether the receiver gets it in chunks.
    let inChunks: Bool
    let sent: [UInt8]
    let body: [UInt8]

    init(_ name: String, _ framing: BodyFraming, inChunks: Bool = false, sent: [UInt8] = [], body: [UInt8] = []) {
        testDescription = name
        self.framing = framing
        self.inChunks = inChunks
        self.sent = sent
        self.body = body
    }

    var endsByClose: Bool { framing == .untilClose }

    static let received = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
    static let written = Array("HTTP/1.1 200 OK\r\nVia: 1.1 test\r\n\r\n".utf8)

    static let small: [Passage] = {
        let text = Array("Hello, proxies of the world".utf8)
        let chunks = Array("5;a=\"b\"\r\nHello\r\n16\r\n, proxies of the world\r\n0\r\nX-Sum: 1\r\n\r\n".utf8)
        return [
            Passage("length", .length(27), sent: text, body: text),
            Passage("chunked", .chunked, inChunks: true, sent: chunks, body: text),
            Passage("close", .untilClose, sent: text, body: text),
            Passage("chunks taken off", .chunked, sent: chunks, body: text),
            Passage("chunks put around", .untilClose, inChunks: true, sent: text, body: text),
        ]
    }()

    static let large: [Passage] = {
        var state: UInt32 = 1
        let bytes = (0..<3_000_000).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(truncatingIfNeeded: state >> 24)
        }
        var chunks: [UInt8] = []
        var rest = bytes[...]
        for size in [1, 70_000, 16, 4096, 2_000_000, 925_887] {
            chunks += Array(String(size, radix: 16).utf8) + [13, 10] + rest.prefix(size) + [13, 10]
            rest = rest.dropFirst(size)
        }
        chunks += Array("0\r\n\r\n".utf8)
        return [
            Passage("length", .length(3_000_000), sent: bytes, body: bytes),
            Passage("chunked", .chunked, inChunks: true, sent: chunks, body: bytes),
            Passage("close", .untilClose, sent: bytes, body: bytes),
            Passage("chunks taken off", .chunked, sent: chunks, body: bytes),
            Passage("chunks put around", .untilClose, inChunks: true, sent: bytes, body: bytes),
        ]
    }()

    /// The body of a message as it arrived, without its chunks.
    func decoded(_ arrived: [UInt8]) -> [UInt8]? {
        guard arrived.starts(with: Self.written) else { return nil }
        var body = Array(arrived.dropFirst(Self.written.count))
        guard inChunks else { return body }
        var decoder = ChunkedDecoder()
        var span = body.mutableSpan
        guard case .passed(let payload, let consumed, ended: true) = decoder.decode(inPlace: &span),
            consumed == body.count
        else { return nil }
        let trailers = String(decoding: decoder.trailers.lines, as: UTF8.self)
        #expect(trailers == (sent.count < 100 && framing == .chunked ? "X-Sum: 1\r\n" : ""))
        return Array(body[..<payload])
    }
}

/// Hides a pipe and an outlet from each other, so that bodies take the path between other doors.
private final class Detour: BodySource, BodySink {
    private let source: any BodySource
    private var sink: (any BodySink)?

    init(_ source: any BodySource) { self.source = source }

    var moved: UInt64 { source.moved }
    var carried: UInt64 { sink?.carried ?? 0 }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        self.sink = sink
        defer { self.sink = nil }
        return source.move(to: self, readable: readable)
    }

    func write(_ piece: RawSpan) throws(StreamError) -> Int { try sink?.write(piece) ?? 0 }
    func end(_ trailers: TrailerSection) throws(StreamError) -> Bool { try sink?.end(trailers) ?? true }
    func flush() throws(StreamError) -> Bool { try sink?.flush() ?? true }
}

/// A pipe and an outlet over wires.
final class Line {
    let wires: Wires
    let pipe: MessagePipe
    let outlet: HTTP1Outlet
    private let source: any BodySource

    /// - Parameter isDirect: as between two connections of HTTP/1.1.
    init(isDirect: Bool = true, salvages: Bool = false) throws {
        wires = try Wires()
        pipe = MessagePipe(
            salvages ? .responses : .requests, on: wires.source, received: ByteBuffer(slabs: wires.slabs))
        outlet = HTTP1Outlet(wires.sink, slabs: wires.slabs)
        source = isDirect ? pipe : Detour(pipe)
    }

    func receiveHead() throws {
        guard case .received? = pipe.receive(limit: 65536) else { throw Unexpected(text: "nothing was received") }
    }

    func begin(_ passage: Passage, head: [UInt8] = Passage.written) {
        pipe.begin(head: Passage.received.count, framing: passage.framing)
        outlet.begin(inChunks: passage.inChunks, from: source) { $0 += head }
    }

    /// The name of the outcome.
    func move() throws -> String {
        let outcome = source.move(to: outlet, readable: true)
        if case .waiting = outcome { _ = try outlet.flush() }
        return String("\(outcome)".prefix { $0 != "(" })
    }
}

struct Unexpected: Error { let text: String }

@Suite struct MessagePipeTests {
    @Test(arguments: Passage.small, [true, false]) func aBodyArrivesWholeWhereverItWasCut(
        _ passage: Passage, isDirect: Bool
    ) throws {
        for cut in 0...passage.sent.count {
            let line = try Line(isDirect: isDirect)
            line.wires.send(Passage.received + passage.sent[..<cut])
            try line.receiveHead()
            line.begin(passage)
            if cut < passage.sent.count {
                #expect(try line.move() == "waiting")
                line.wires.send(passage.sent[cut...])
            }
            if passage.endsByClose {
                #expect(try line.move() == "waiting")
                line.wires.endSource()
            }
            #expect(try line.move() == "ended")
            let arrived = line.wires.arrived()
            #expect(passage.decoded(arrived) == passage.body, "cut at \(cut)")
            if isDirect, passage.framing == .chunked, passage.inChunks {
                #expect(Array(arrived.dropFirst(Passage.written.count)) == passage.sent)
            }
            #expect(line.outlet.carried == UInt64(arrived.count) && line.pipe.isComplete)
            line.pipe.releaseBuffer()
            #expect(line.wires.slabs.inUse == 0)
        }
    }

    @Test(arguments: Passage.small.filter { !$0.endsByClose }, [true, false])
    func bytesBehindTheMessageStayUnread(_ passage: Passage, isDirect: Bool) throws {
        let behind = Array("HTTP/1.1 500 Unasked\r\n\r\n".utf8)
        for cut in 0...passage.sent.count {
            let line = try Line(isDirect: isDirect)
            line.wires.send(Passage.received + passage.sent[..<cut])
            try line.receiveHead()
            line.begin(passage)
            if cut < passage.sent.count { #expect(try line.move() == "waiting") }
            line.wires.send(passage.sent[cut...] + behind)
            #expect(try line.move() == "ended")
            if cut == passage.sent.count { try line.receiveHead() }
            #expect(passage.decoded(line.wires.arrived()) == passage.body)
            #expect(line.pipe.unread == behind, "cut at \(cut)")
        }
    }

    @Test(arguments: Passage.small, [true, false]) func anEndInTheMiddleIsATruncation(
        _ passage: Passage, isDirect: Bool
    ) throws {
        guard !passage.endsByClose else { return }
        for cut in 0..<passage.sent.count {
            let line = try Line(isDirect: isDirect)
            line.wires.send(Passage.received + passage.sent[..<cut])
            try line.receiveHead()
            line.begin(passage)
            _ = try line.move()
            line.wires.endSource()
            #expect(try line.move() == "truncated", "cut at \(cut)")
        }
    }

    @Test(arguments: Passage.large, [true, false]) func aSlowReaderLosesNothing(
        _ passage: Passage, isDirect: Bool
    ) throws {
        let line = try Line(isDirect: isDirect)
        let wires = line.wires
        wires.send(Passage.received)
        try line.receiveHead()
        line.begin(passage)
        var sent = 0
        var arrived: [UInt8] = []
        var blocked = 0
        var outcome = ""
        while outcome != "ended" {
            if sent < passage.sent.count {
                sent += wires.offer(Array(passage.sent[sent..<min(sent + 100_000, passage.sent.count)]))
            } else if passage.endsByClose {
                wires.endSource()
            }
            outcome = try line.move()
            if outcome == "blocked" {
                blocked += 1
                // Sources are not read while the sink takes nothing.
                #expect(!wires.source.wantsRead)
                arrived += available(wires.to, atMost: 30_000)
            } else {
                try #require(outcome == "waiting" || outcome == "ended")
            }
            // One slab for received data, and one for data written in chunks or joined with a head.
            try #require(wires.slabs.inUse <= 2)
        }
        arrived += wires.arrived()
        #expect(blocked > 0)
        #expect(passage.decoded(arrived) == passage.body)
    }

    @Test(arguments: [false, true], [false, true]) func aMalformedChunkIsTold(
        inChunks: Bool, isDirect: Bool
    ) throws {
        let line = try Line(isDirect: isDirect)
        line.wires.send(Passage.received + Array("5\r\nHello!\r\n".utf8))
        try line.receiveHead()
        line.begin(Passage("bad", .chunked, inChunks: inChunks))
        #expect(try line.move() == "malformed")
        #expect(line.wires.arrived().isEmpty)
    }

    @Test(arguments: [false, true]) func whatIsWholeOfAMalformedBodyIsSalvaged(inChunks: Bool) throws {
        let line = try Line(salvages: true)
        line.wires.send(Passage.received + Array("5\r\nHello\r\nZZ\r\n".utf8))
        try line.receiveHead()
        line.begin(Passage("bad", .chunked, inChunks: inChunks))
        #expect(try line.move() == "malformed")
        #expect(line.wires.arrived() == Passage.written + Array((inChunks ? "5\r\nHello\r\n" : "Hello").utf8))
    }

    @Test(arguments: [false, true], [false, true])
    func nothingIsWrittenOfABodyThatIsMalformedFromItsStart(inChunks: Bool, isDirect: Bool) throws {
        let line = try Line(isDirect: isDirect, salvages: true)
        line.wires.send(Passage.received + Array("ZZ\r\nHello\r\n".utf8))
        try line.receiveHead()
        line.begin(Passage("bad", .chunked, inChunks: inChunks))
        #expect(try line.move() == "malformed")
        #expect(line.wires.arrived().isEmpty && line.outlet.carried == 0)
    }

    @Test func whatASinkDoesntTakeOfAWholeMessageCanBeDropped() throws {
        let passage = Passage.small[0]
        let line = try Line()
        line.wires.send(Passage.received + passage.sent + Array("next".utf8))
        try line.receiveHead()
        line.begin(passage)
        shutdown(line.wires.to, CInt(SHUT_RDWR))
        #expect(try line.move() == "sinkFailed")
        #expect(line.pipe.isComplete)
        line.pipe.abandon()
        #expect(line.pipe.unread == Array("next".utf8))
    }

    /// Its head stays, so that it can be sent again.
    @Test func aMessageWithoutABodyEndsWithItsHead() throws {
        let line = try Line()
        line.wires.send(Passage.received + Array("next".utf8))
        try line.receiveHead()
        line.begin(Passage("none", .none))
        #expect(try line.move() == "ended")
        #expect(line.wires.arrived() == Passage.written)
        #expect(line.pipe.unread == Passage.received + Array("next".utf8))
        line.pipe.dropHead()
        #expect(line.pipe.unread == Array("next".utf8))
    }

    @Test func aSinkThatIsGoneIsTheSinksFailure() throws {
        let line = try Line()
        line.wires.send(Passage.received + [1, 2, 3])
        try line.receiveHead()
        line.begin(Passage("length", .length(10)))
        shutdown(line.wires.to, CInt(SHUT_RDWR))
        #expect(try line.move() == "sinkFailed")
    }

    // MARK: Heads

    /// A head goes out with the first piece of its body, however long it is.
    @Test(arguments: [400, 600, 5000, 70_000, 200_000], Passage.small) func aHeadMayBeLong(
        size: Int, _ passage: Passage
    ) throws {
        let line = try Line()
        line.wires.send(Passage.received + passage.sent)
        if passage.endsByClose { line.wires.endSource() }
        try line.receiveHead()
        let head = [UInt8](repeating: UInt8(ascii: "h"), count: size)
        line.begin(passage, head: head)
        var arrived: [UInt8] = []
        var outcome = ""
        while outcome != "ended" {
            outcome = try line.move()
            arrived += line.wires.arrived()
            try #require(outcome != "sinkFailed")
        }
        #expect(arrived.starts(with: head))
        #expect(passage.decoded(Passage.written + arrived.dropFirst(size)) == passage.body)
    }

    /// An unsent head doesn't come before the next one.
    @Test func aHeadThatWasNotSentIsForgotten() throws {
        let line = try Line()
        line.wires.send(Passage.received + Passage.small[0].sent)
        try line.receiveHead()
        line.begin(Passage("length", .length(27)), head: Array("first".utf8))
        line.outlet.reset()
        line.begin(Passage.small[0])
        #expect(try line.move() == "ended")
        #expect(line.wires.arrived() == Passage.written + Passage.small[0].body)
    }

    /// A write that was begun can't be taken back, though nothing of it has left.
    @Test func aBlockedHeadHasBegun() throws {
        let line = try Line()
        var filling = ByteBuffer(slabs: line.wires.slabs)
        var outcome = WriteOutcome.done
        while case .done = outcome {
            filling.append(copying: [UInt8](repeating: 0, count: 60_000).span.bytes)
            outcome = line.wires.sink.write(filling.count, from: &filling)
        }
        line.begin(Passage.small[0])
        #expect(!line.outlet.hasBegun)
        #expect(try !line.outlet.flush())
        #expect(line.outlet.carried == 0 && line.outlet.hasBegun)
        line.outlet.reset()
        #expect(!line.outlet.hasBegun)
    }

    @Test(arguments: [70_000, 100_000, 200_000]) func receivedBytesAreBounded(limit: Int) throws {
        let line = try Line()
        let piece = [UInt8](repeating: 1, count: 10_000)
        var isFull = false
        while !isFull {
            _ = line.wires.offer(piece)
            isFull = line.pipe.receive(limit: limit) == nil
            try #require(line.pipe.unread.count <= limit + 1)
        }
        #expect(line.pipe.unread.count >= limit)
    }
}

extension MessagePipe {
    fileprivate var unread: [UInt8] { withUnread { [UInt8](copying: $0.bytes) } }
}
