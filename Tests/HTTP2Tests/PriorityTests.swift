import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// The order of streams (RFC 9218).
@Suite struct PriorityTests {
    @Test(arguments: [
        ("", HTTP2Priority()), ("u=0", HTTP2Priority(urgency: 0)),
        ("u=7, i", HTTP2Priority(urgency: 7, isIncremental: true)),
        ("i", HTTP2Priority(isIncremental: true)), ("i=?1,u=1", HTTP2Priority(urgency: 1, isIncremental: true)),
        ("i=?0", HTTP2Priority()),
        ("u=8", HTTP2Priority()), ("u=-1", HTTP2Priority()), ("u=1.5", HTTP2Priority()), ("u=\"1\"", HTTP2Priority()),
        ("i=1", HTTP2Priority()),
        ("u=2;a=b, x=(1 2 \"(\");q, i", HTTP2Priority(urgency: 2, isIncremental: true)),
        ("u=1, u=5", HTTP2Priority(urgency: 5)),
        ("  u=4 ,\ti ", HTTP2Priority(urgency: 4, isIncremental: true)), ("x=:aGk=:, u=6", HTTP2Priority(urgency: 6)),
        ("urgent, u=2", HTTP2Priority(urgency: 2)), ("u", HTTP2Priority()),
        ("*x=1;y;z=2, u=0", HTTP2Priority(urgency: 0)),
    ])
    func aPriorityFieldSaysHowUrgent(text: String, priority: HTTP2Priority) {
        #expect(HTTP2Priority(parsing: Array(text.utf8).span) == priority)
    }

    @Test(arguments: [
        "U=1", "u=1,", ", u=1", "u=", "u=1 i", "=1", "u=1;", "u=\"", "u=(1", "u=1)", "u=\u{e9}", "1", "u=1,,i",
        "u=1; =2", "u=\"\\",
    ])
    func whatIsntADictionarySaysNothing(text: String) {
        #expect(HTTP2Priority(parsing: Array(text.utf8).span) == nil)
    }

    @Test func thoseThatCanHaveMoreToSendTakeTurnsAsThoseThatHaveSome() {
        let few = [
            HTTP2Priority(urgency: 1), HTTP2Priority(urgency: 2), HTTP2Priority(urgency: 1, isIncremental: true),
            HTTP2Priority(urgency: 2, isIncremental: true),
        ]
        // All combinations of four streams.
        for number in 0..<256 {
            let priorities = (0..<4).map { few[number >> (2 * $0) & 3] }
            let streams = (0..<4).map { HTTP2StreamID(Int32(2 * $0 + 1)) }
            var (turn, schedule) = (SendingTurn(), StreamSchedule())
            for (stream, priority) in zip(streams, priorities) {
                turn.add(stream, priority)
                schedule.insert(stream, priority)
            }
            let included = zip(streams, priorities).filter { turn.includes($0, $1) }.map(\.0)
            // Each incremental stream has a turn before any has another; the others share one turn.
            var next: [HTTP2StreamID] = []
            for _ in included { if let stream = schedule.removeFirst() { next.append(stream) } }
            #expect(Set(next) == Set(included), "\(priorities)")
        }
    }

    @Test func everyBeginningOfAFieldIsReadWithoutHarm() {
        let text = Array("u=2;a=\"b\\\"\", x=(1 2);q, i=?1 ,\t*k=:aGk=:".utf8)
        for count in 0...text.count { _ = HTTP2Priority(parsing: Array(text[..<count]).span) }
    }

    @Test func aPriorityReadsAsItIsWritten() {
        for urgency in UInt8(0)...7 {
            for isIncremental in [false, true] {
                let priority = HTTP2Priority(urgency: urgency, isIncremental: isIncremental)
                #expect(HTTP2Priority(parsing: Array(priority.description.utf8).span) == priority)
            }
        }
    }

    // MARK: The schedule

    private func order(_ streams: [(Int32, HTTP2Priority)], frames: Int) -> [Int32] {
        var schedule = StreamSchedule()
        let priorities = Dictionary(uniqueKeysWithValues: streams)
        for (stream, priority) in streams { schedule.insert(HTTP2StreamID(stream), priority) }
        return (0..<frames).compactMap { _ in
            let first = schedule.first
            guard let next = schedule.removeFirst(), next == first, let priority = priorities[next.rawValue] else {
                return nil
            }
            schedule.insert(next, priority)
            return next.rawValue
        }
    }

    @Test func theMoreUrgentComeFirst() {
        #expect(
            order([(1, HTTP2Priority()), (3, HTTP2Priority(urgency: 5)), (5, HTTP2Priority(urgency: 1))], frames: 3)
                == [5, 5, 5])
    }

    @Test func incrementalOnesTakeTurnsOthersGoOneAfterTheOther() {
        let shared = HTTP2Priority(isIncremental: true)
        #expect(order([(1, shared), (3, shared), (5, shared)], frames: 7) == [1, 3, 5, 1, 3, 5, 1])
        #expect(order([(5, HTTP2Priority()), (1, HTTP2Priority()), (3, HTTP2Priority())], frames: 3) == [1, 1, 1])
        #expect(
            order([(1, HTTP2Priority()), (3, shared), (5, HTTP2Priority()), (7, shared)], frames: 7) == [
                1, 3, 7, 1, 3, 7, 1,
            ])
    }

    @Test func whatLeavesIsNoLongerThere() {
        var schedule = StreamSchedule()
        let (shared, alone) = (HTTP2Priority(isIncremental: true), HTTP2Priority())
        for stream in Int32(1)...4 { schedule.insert(HTTP2StreamID(stream), stream % 2 == 0 ? shared : alone) }
        schedule.remove(HTTP2StreamID(2), shared)
        schedule.remove(HTTP2StreamID(1), alone)
        schedule.remove(HTTP2StreamID(9), alone)
        schedule.remove(HTTP2StreamID(8), shared)
        #expect(schedule.removeFirst() == HTTP2StreamID(3))
        schedule.remove(HTTP2StreamID(4), shared)
        #expect(schedule.isEmpty && schedule.first == nil && schedule.removeFirst() == nil)
        schedule.insert(HTTP2StreamID(5), alone)
        #expect(schedule.first == HTTP2StreamID(5))
    }

    /// Each sequence of steps, compared with a model that keeps streams in plain lists.
    @Test func aScheduleDoesWhatASimpleOneDoes() {
        for seed in UInt64(1)...200 {
            var random = Seeded(state: seed)
            var schedule = StreamSchedule()
            var inside: [Int32: HTTP2Priority] = [:]
            for _ in 0..<300 {
                let stream = Int32.random(in: 1...20, using: &random)
                if let priority = inside[stream] {
                    if Bool.random(using: &random) {
                        schedule.remove(HTTP2StreamID(stream), priority)
                        inside[stream] = nil
                    } else if let next = schedule.removeFirst() {
                        let most = inside.values.map(\.urgency).min()
                        #expect(inside[next.rawValue]?.urgency == most)
                        if inside[next.rawValue]?.isIncremental == false {
                            let rivals = inside.filter { $0.value.urgency == most && !$0.value.isIncremental }.keys
                            #expect(rivals.min() == next.rawValue)
                        }
                        inside[next.rawValue] = nil
                    }
                } else {
                    let priority = HTTP2Priority(
                        urgency: UInt8.random(in: 0...2, using: &random), isIncremental: Bool.random(using: &random))
                    schedule.insert(HTTP2StreamID(stream), priority)
                    inside[stream] = priority
                }
                #expect(schedule.isEmpty == inside.isEmpty)
            }
            while let next = schedule.removeFirst() { #expect(inside.removeValue(forKey: next.rawValue) != nil) }
            #expect(inside.isEmpty)
        }
    }

    // MARK: Sessions

    /// The order of frames of streams with two-frame bodies.
    private func frames(_ priorities: [String?], updates: [UInt8] = []) throws -> [Int32] {
        let server = try Peer.server()
        server.receive(
            priorities.enumerated().flatMap { Raw.request(2 * UInt32($0) + 1, $1.map { [("priority", $0)] } ?? []) }
                + updates)
        for index in priorities.indices {
            let stream = HTTP2StreamID(2 * Int32(index) + 1)
            server.session.submitResponse(stream, response(), hasBody: true)
            server.say(stream, String(repeating: "x", count: 20_000))
        }
        // More than the connection's window.
        server.receive(Raw.windowUpdate(0, 1 << 20))
        _ = server.collect()
        return server.order.map(\.rawValue)
    }

    @Test func responsesShareTheConnectionUnlessTheirRequestsSayMore() throws {
        #expect(try frames([nil, nil, nil]) == [1, 3, 5, 1, 3, 5])
        #expect(try frames(["u=3", "u=3", "u=3"]) == [1, 1, 3, 3, 5, 5])
        #expect(try frames(["u=5", "u=0", "i"]) == [3, 3, 5, 5, 1, 1])
        #expect(try frames(["i", "i", "u=9"]) == [1, 3, 5, 1, 3, 5])
    }

    @Test func priorityUPDATEChangesTheOrderAlsoBeforeTheRequest() throws {
        let early = Raw.frame(16, 0, 0, Raw.number(3) + Array("u=0".utf8))
        #expect(try frames([nil, nil, nil], updates: early) == [3, 3, 1, 5, 1, 5])
        let server = try Peer.server()
        server.receive(early + Raw.request(1) + Raw.request(3))
        #expect(server.received.first == .priority(3, HTTP2Priority(urgency: 0)))
        for stream in [Int32(1), 3] {
            server.session.submitResponse(HTTP2StreamID(stream), response(), hasBody: true)
            server.say(HTTP2StreamID(stream), "x")
        }
        _ = server.collect()
        #expect(server.order.map(\.rawValue) == [3, 1])
    }

    @Test func aPriorityMayBeSetHere() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1) + Raw.request(3))
        for stream in [Int32(1), 3] {
            server.session.submitResponse(HTTP2StreamID(stream), response(), hasBody: true)
            server.say(HTTP2StreamID(stream), "x")
        }
        server.session.setPriority(HTTP2Priority(urgency: 6), of: HTTP2StreamID(1))
        _ = server.collect()
        #expect(server.order.map(\.rawValue) == [3, 1])
    }

    @Test func aClientTellsItsPeer() throws {
        let pair = try Pair()
        var head = request()
        head.append("priority", "u=6")
        let first = try #require(pair.client.session.submitRequest(head, hasBody: false))
        _ = try #require(pair.client.session.submitRequest(head, hasBody: false, priority: HTTP2Priority(urgency: 2)))
        pair.exchange()
        pair.client.session.setPriority(HTTP2Priority(urgency: 1, isIncremental: true), of: first)
        pair.exchange()
        #expect(
            pair.events.server == [
                .head(1, "GET / HTTP/1.1\r\nHost: a.test\r\npriority: u=6\r\n\r\n", ends: true, body: .none),
                .head(3, "GET / HTTP/1.1\r\nHost: a.test\r\npriority: u=2\r\n\r\n", ends: true, body: .none),
                .priority(1, HTTP2Priority(urgency: 1, isIncremental: true)),
            ])
    }

    @Test func aStreamWithoutWindowDoesntHoldUpTheOthers() throws {
        let server = try Peer(.server)
        server.receive(
            Raw.preface + Raw.settings([(4, 10)]) + Raw.settingsAck + Raw.request(1, [("priority", "u=0")])
                + Raw.request(3))
        for stream in [Int32(1), 3] {
            server.session.submitResponse(HTTP2StreamID(stream), response(), hasBody: true)
            server.say(HTTP2StreamID(stream), String(repeating: "x", count: 25))
        }
        _ = server.collect()
        #expect(server.order.map(\.rawValue) == [1, 3])
        server.receive(Raw.windowUpdate(3, 10))
        _ = server.collect()
        #expect(server.order.map(\.rawValue) == [1, 3, 3])
        server.receive(Raw.windowUpdate(3, 100) + Raw.windowUpdate(1, 100))
        _ = server.collect()
        #expect(server.order.map(\.rawValue) == [1, 3, 3, 1, 3])
    }
}

/// The same numbers in each run (SplitMix64).
private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        let mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ mixed >> 27
    }
}
