import EventLoop
import Glibc
import HTTPWire
import Session
import Testing
import Transport

/// One kind of body and how it is to arrive.
struct Passage: Sendable, CustomTestStringConvertible {
    enum Coding: Sendable { case asReceived, dechunked, chunked }

    let testDescription: String
    let framing: BodyFraming
    let coding: Coding
    let sent: [UInt8]
    let body: [UInt8]

    init(_ name: String, _ framing: BodyFraming, _ coding: Coding = .asReceived, sent: [UInt8], body: [UInt8]) {
        testDescription = name
        self.framing = framing
        self.coding = coding
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
            Passage("chunked", .chunked, sent: chunks, body: chunks),
            Passage("close", .untilClose, sent: text, body: text),
            Passage("chunks taken off", .chunked, .dechunked, sent: chunks, body: text),
            Passage("chunks put around", .untilClose, .chunked, sent: text, body: text),
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
            Passage("chunked", .chunked, sent: chunks, body: chunks),
            Passage("close", .untilClose, sent: bytes, body: bytes),
            Passage("chunks taken off", .chunked, .dechunked, sent: chunks, body: bytes),
            Passage("chunks put around", .untilClose, .chunked, sent: bytes, body: bytes),
        ]
    }()

    /// The body of a message as it arrived; chunks that the pipe put around are taken off again.
    func decoded(_ arrived: [UInt8]) -> [UInt8]? {
        guard arrived.starts(with: Self.written) else { return nil }
        var body = Array(arrived.dropFirst(Self.written.count))
        guard coding == .chunked else { return body }
        var decoder = ChunkedDecoder()
        var span = body.mutableSpan
        guard case .passed(let payload, let consumed, ended: true) = decoder.decode(inPlace: &span), consumed == body.count
        else { return nil }
        return Array(body[..<payload])
    }
}

extension MessagePipe {
    mutating func receiveHead(on wires: Wires) throws {
        guard case .received? = receive(from: wires.source, limit: 65536) else {
            throw Unexpected(text: "nothing was received")
        }
    }

    mutating func begin(_ passage: Passage, replayLimit: Int = 0, salvages: Bool = false) {
        var head = Passage.written
        begin(
            head: &head, inPlaceOf: Passage.received.count, framing: passage.framing,
            dechunks: passage.coding == .dechunked, chunks: passage.coding == .chunked,
            replayLimit: replayLimit, salvages: salvages)
    }

    /// The name of the outcome.
    mutating func pump(_ wires: Wires, to sink: ByteStream? = nil) -> String {
        let outcome = "\(pump(from: wires.source, to: sink ?? wires.sink, readable: true))"
        return String(outcome.prefix { $0 != "(" })
    }
}

struct Unexpected: Error { let text: String }

@Suite struct MessagePipeTests {
    @Test(arguments: Passage.small) func `a body arrives whole wherever it was cut`(_ passage: Passage) throws {
        for cut in 0...passage.sent.count {
            let wires = try Wires()
            var pipe = MessagePipe(slabs: wires.slabs)
            wires.send(Passage.received + passage.sent[..<cut])
            try pipe.receiveHead(on: wires)
            pipe.begin(passage)
            if cut < passage.sent.count {
                #expect(pipe.pump(wires) == "waiting")
                wires.send(passage.sent[cut...])
            }
            if passage.endsByClose {
                #expect(pipe.pump(wires) == "waiting")
                wires.endSource()
            }
            #expect(pipe.pump(wires) == "ended")
            let arrived = wires.arrived()
            #expect(passage.decoded(arrived) == passage.body, "cut at \(cut)")
            let (carried, isComplete) = (pipe.carried, pipe.isComplete)
            #expect(carried == UInt64(arrived.count))
            #expect(isComplete)
            pipe.rest()
            let inUse = wires.slabs.inUse
            #expect(inUse == 0)
        }
    }

    @Test(arguments: Passage.small.filter { !$0.endsByClose })
    func `bytes behind the message stay unread`(_ passage: Passage) throws {
        let behind = Array("HTTP/1.1 500 Unasked\r\n\r\n".utf8)
        for cut in 0...passage.sent.count {
            let wires = try Wires()
            var pipe = MessagePipe(slabs: wires.slabs)
            wires.send(Passage.received + passage.sent[..<cut])
            try pipe.receiveHead(on: wires)
            pipe.begin(passage)
            if cut < passage.sent.count { #expect(pipe.pump(wires) == "waiting") }
            wires.send(passage.sent[cut...] + behind)
            #expect(pipe.pump(wires) == "ended")
            if cut == passage.sent.count { try pipe.receiveHead(on: wires) }
            #expect(passage.decoded(wires.arrived()) == passage.body)
            let unread = Array(pipe.unread)
            #expect(unread == behind, "cut at \(cut)")
        }
    }

    @Test(arguments: Passage.small) func `an end in the middle is a truncation`(_ passage: Passage) throws {
        guard !passage.endsByClose else { return }
        for cut in 0..<passage.sent.count {
            let wires = try Wires()
            var pipe = MessagePipe(slabs: wires.slabs)
            wires.send(Passage.received + passage.sent[..<cut])
            try pipe.receiveHead(on: wires)
            pipe.begin(passage)
            _ = pipe.pump(wires)
            wires.endSource()
            #expect(pipe.pump(wires) == "truncated", "cut at \(cut)")
        }
    }

    @Test(arguments: Passage.large) func `a slow reader loses nothing`(_ passage: Passage) throws {
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received)
        try pipe.receiveHead(on: wires)
        pipe.begin(passage)
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
            outcome = pipe.pump(wires)
            if outcome == "blocked" {
                blocked += 1
                // Sources are not read while the sink takes nothing.
                let wantsRead = wires.source.wantsRead
                #expect(!wantsRead)
                arrived += available(wires.to, atMost: 30_000)
            } else {
                try #require(outcome == "waiting" || outcome == "ended")
            }
            let inUse = wires.slabs.inUse
            try #require(inUse <= 1)
        }
        arrived += wires.arrived()
        #expect(blocked > 0)
        #expect(passage.decoded(arrived) == passage.body)
    }

    @Test(arguments: [false, true]) func `a malformed chunk is told`(dechunks: Bool) throws {
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + Array("5\r\nHello!\r\n".utf8))
        try pipe.receiveHead(on: wires)
        pipe.begin(Passage("bad", .chunked, dechunks ? .dechunked : .asReceived, sent: [], body: []))
        #expect(pipe.pump(wires) == "malformed")
        #expect(wires.arrived().isEmpty)
    }

    @Test(arguments: [false, true]) func `what is whole of a malformed body is salvaged`(dechunks: Bool) throws {
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + Array("5\r\nHello\r\nZZ\r\n".utf8))
        try pipe.receiveHead(on: wires)
        pipe.begin(
            Passage("bad", .chunked, dechunks ? .dechunked : .asReceived, sent: [], body: []), salvages: true)
        #expect(pipe.pump(wires) == "malformed")
        #expect(wires.arrived() == Passage.written + Array((dechunks ? "Hello" : "5\r\nHello\r\n").utf8))
    }

    @Test(arguments: [false, true]) func `nothing is written of a body that is malformed from its start`(dechunks: Bool) throws {
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + Array("ZZ\r\nHello\r\n".utf8))
        try pipe.receiveHead(on: wires)
        pipe.begin(
            Passage("bad", .chunked, dechunks ? .dechunked : .asReceived, sent: [], body: []), salvages: true)
        #expect(pipe.pump(wires) == "malformed")
        #expect(wires.arrived().isEmpty)
        let carried = pipe.carried
        #expect(carried == 0)
    }

    @Test func `what a sink doesn't take of a whole message can be dropped`() throws {
        let passage = Passage.small[0]
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + passage.sent + Array("next".utf8))
        try pipe.receiveHead(on: wires)
        pipe.begin(passage)
        shutdown(wires.to, CInt(SHUT_RDWR))
        #expect(pipe.pump(wires) == "sinkFailed")
        let isComplete = pipe.isComplete
        #expect(isComplete)
        pipe.abandon()
        let unread = Array(pipe.unread)
        #expect(unread == Array("next".utf8))
    }

    @Test func `a message without a body ends with its head`() throws {
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + Array("next".utf8))
        try pipe.receiveHead(on: wires)
        pipe.begin(Passage("none", .none, sent: [], body: []))
        #expect(pipe.pump(wires) == "ended")
        #expect(wires.arrived() == Passage.written)
        let unread = Array(pipe.unread)
        #expect(unread == Array("next".utf8))
    }

    @Test func `a sink that is gone is the sink's failure`() throws {
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + [1, 2, 3])
        try pipe.receiveHead(on: wires)
        pipe.begin(Passage("length", .length(10), sent: [], body: []))
        shutdown(wires.to, CInt(SHUT_RDWR))
        #expect(pipe.pump(wires) == "sinkFailed")
    }

    // MARK: Replay

    /// The first sink gets some of the message, the second one all of it.
    @Test(arguments: [0, 1, 13, 27]) func `what was sent can be sent again`(cut: Int) throws {
        let passage = Passage.small[0]
        let wires = try Wires()
        let second = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + passage.sent[..<cut])
        try pipe.receiveHead(on: wires)
        pipe.begin(passage, replayLimit: 27)
        #expect(pipe.pump(wires) == (cut < 27 ? "waiting" : "ended"))
        #expect(wires.arrived() == Passage.written + passage.sent[..<cut])
        let canRewind = pipe.canRewind
        #expect(canRewind)
        pipe.rewind()
        wires.send(passage.sent[cut...] + Array("behind".utf8))
        #expect(pipe.pump(wires, to: second.sink) == "ended")
        let arrived = second.arrived()
        #expect(arrived == Passage.written + passage.sent)
        let carried = pipe.carried
        #expect(carried == UInt64(arrived.count))
        pipe.forgetReplay()
        let afterwards = pipe.canRewind
        #expect(!afterwards)
        if cut == 27 { try pipe.receiveHead(on: wires) }
        let unread = Array(pipe.unread)
        #expect(unread == Array("behind".utf8))
    }

    @Test func `what no longer fits can't be sent again, and still arrives`() throws {
        let passage = Passage.large[0]
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received)
        try pipe.receiveHead(on: wires)
        pipe.begin(passage, replayLimit: 64 << 10)
        var sent = 0
        var arrived: [UInt8] = []
        var outcome = ""
        while outcome != "ended" {
            sent += wires.offer(Array(passage.sent[sent..<min(sent + 50_000, passage.sent.count)]))
            outcome = pipe.pump(wires)
            arrived += wires.arrived()
            let (canRewind, carried) = (pipe.canRewind, pipe.carried)
            #expect(!canRewind || carried <= UInt64(SlabPool.slabSize))
        }
        let canRewind = pipe.canRewind
        #expect(!canRewind)
        #expect(passage.decoded(arrived) == passage.body)
    }

    /// Up to the limit it is kept, however many times the memory has to grow for that; a byte more, and it isn't.
    @Test(arguments: [0, 1]) func `a long body is kept up to the limit`(beyond: Int) throws {
        let body = Array(Passage.large[0].body[..<(700_000 + beyond)])
        let passage = Passage("length", .length(UInt64(body.count)), sent: body, body: body)
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received)
        try pipe.receiveHead(on: wires)
        pipe.begin(passage, replayLimit: 700_000)
        func pumpAll(to pipe: inout MessagePipe, from start: Int) -> [UInt8] {
            var (sent, arrived, outcome) = (start, [UInt8](), "")
            while outcome != "ended" {
                sent += wires.offer(Array(body[sent..<min(sent + 50_000, body.count)]))
                outcome = pipe.pump(wires)
                arrived += wires.arrived()
            }
            return arrived
        }
        #expect(pumpAll(to: &pipe, from: 0) == Passage.written + body)
        let canRewind = pipe.canRewind
        #expect(canRewind == (beyond == 0))
        guard beyond == 0 else { return }
        var head = Array("POST / HTTP/1.1\r\nAuthorization: Digest of a length that the first head did not have\r\n\r\n".utf8)
        let other = head
        pipe.beginAgain(head: &head, keepsBody: true)
        #expect(pumpAll(to: &pipe, from: body.count) == other + body)
    }

    /// Where the budget is spent, a body isn't kept, and still arrives. What was kept is given back with its memory.
    @Test(arguments: [1 << 20, 200_000, 0]) func `what is kept is drawn from the budget`(limit: Int) throws {
        let body = Array(Passage.large[0].body[..<700_000])
        let budget = BodyBudget(limit: limit)
        let wires = try Wires(budget: budget)
        do {
            var pipe = MessagePipe(slabs: wires.slabs)
            wires.send(Passage.received)
            try pipe.receiveHead(on: wires)
            pipe.begin(Passage("length", .length(700_000), sent: body, body: body), replayLimit: 700_000)
            var (sent, arrived, outcome) = (0, [UInt8](), "")
            while outcome != "ended" {
                sent += wires.offer(Array(body[sent..<min(sent + 50_000, body.count)]))
                outcome = pipe.pump(wires)
                arrived += wires.arrived()
                #expect(budget.inUse <= limit)
            }
            #expect(arrived == Passage.written + body)
            let canRewind = pipe.canRewind
            #expect(canRewind == (limit == 1 << 20) && (budget.inUse >= 700_000) == canRewind)
            #expect(budget.refused == (canRewind ? [:] : [.replay: 1]))
            pipe.forgetReplay()
            pipe.rest()
            #expect(budget.inUse == 0)
        }
        #expect(budget.inUse == 0)
    }

    /// In the middle of its body, with what the client has sent of the next request behind it, or none of it.
    @Test(arguments: [0, 1, 13, 27]) func `a message goes out again with another head`(cut: Int) throws {
        let passage = Passage.small[0]
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + passage.sent[..<cut])
        try pipe.receiveHead(on: wires)
        pipe.begin(passage, replayLimit: 100)
        _ = pipe.pump(wires)
        _ = wires.arrived()
        for head in ["short\r\n\r\n", String(repeating: "long", count: 300) + "\r\n\r\n"] {
            var scratch = Array(head.utf8)
            pipe.beginAgain(head: &scratch, keepsBody: true)
            #expect(pipe.pump(wires) == (cut < 27 ? "waiting" : "ended"))
            #expect(wires.arrived() == Array(head.utf8) + passage.sent[..<cut])
        }
        wires.send(passage.sent[cut...] + Array("next".utf8))
        if cut == 27 { try pipe.receiveHead(on: wires) } else { #expect(pipe.pump(wires) == "ended") }
        #expect(wires.arrived() == passage.sent[cut...].map { $0 })
        var scratch = Array("GET\r\n\r\n".utf8)
        pipe.beginAgain(head: &scratch, keepsBody: false)
        #expect(pipe.pump(wires) == "ended")
        #expect(wires.arrived() == Array("GET\r\n\r\n".utf8))
        let unread = Array(pipe.unread)
        #expect(unread == Array("next".utf8))
    }

    // MARK: Heads

    @Test(arguments: [400, 600, 5000, 70_000]) func `a head may grow beyond the room before it`(size: Int) throws {
        let passage = Passage.small[0]
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        wires.send(Passage.received + passage.sent)
        try pipe.receiveHead(on: wires)
        var head = [UInt8](repeating: UInt8(ascii: "h"), count: size)
        pipe.begin(head: &head, inPlaceOf: Passage.received.count, framing: passage.framing)
        #expect(pipe.pump(wires) == "ended")
        #expect(wires.arrived() == [UInt8](repeating: UInt8(ascii: "h"), count: size) + passage.sent)
    }

    @Test(arguments: [70_000, 100_000, 200_000]) func `received bytes are bounded`(limit: Int) throws {
        let wires = try Wires()
        var pipe = MessagePipe(slabs: wires.slabs)
        let piece = [UInt8](repeating: 1, count: 10_000)
        var isFull = false
        while !isFull {
            _ = wires.offer(piece)
            isFull = pipe.receive(from: wires.source, limit: limit) == nil
            let count = pipe.unread.count
            try #require(count <= limit + 1)
        }
        let count = pipe.unread.count
        #expect(count >= limit)
    }
}
