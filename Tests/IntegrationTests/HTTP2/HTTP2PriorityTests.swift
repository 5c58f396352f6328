import Testing

/// Priorities (RFC 9218): obeyed among the streams of a client, and passed on to origins.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2PriorityTests {
    /// The order of the DATA frames of several responses. All responses wait in full until the client opens all its
    /// windows at once.
    private func order(_ crossing: Crossing, _ priorities: [String?]) async throws -> [[Int]] {
        // As much as the proxy's window holds, or a socket.
        let length = crossing == .h2ToH1 ? 40_000 : 200_000
        return try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let client = try HTTP2Client(
                of: try await HTTP2Client.program(in: shared), authority: shared.authority(of: crossing.host))
            // SETTINGS_INITIAL_WINDOW_SIZE
            try await client.connect(settings: ["4": 0])
            var streams: [Int] = []
            for priority in priorities {
                streams.append(
                    try await client.request("GET", "/told/\(length)", priority.map { [("priority", $0)] } ?? []))
            }
            for stream in streams { #expect(try await client.head(stream).status == 200) }
            let origin = try shared.origin(crossing)
            try await eventually("the bodies to arrive") { origin.events.all("told").count == priorities.count }
            try await client.announce(["4": 1 << 20])
            for stream in streams { #expect(try await client.body(stream).count == length) }
            let order = try await client.order()
            return streams.map { stream in order.indices.filter { order[$0] == stream } }
        }
    }

    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func theUrgentComeFirst(crossing: Crossing) async throws {
        let places = try await order(crossing, ["u=7", "u=3", "u=0"])
        for (later, earlier) in [(places[0], places[1]), (places[1], places[2])] {
            #expect(try #require(earlier.last) < #require(later.first), "\(places)")
        }
    }

    /// Incremental responses take turns; the others arrive one after the other.
    @Test func incrementalOnesTakeTurns() async throws {
        let turns = try await order(.h2ToH2, ["u=3, i", "u=3, i"])
        #expect(
            try #require(turns[0].first) < #require(turns[1].last)
                && #require(turns[1].first) < #require(turns[0].last), "\(turns)")
        let inOrder = try await order(.h2ToH2, ["u=3", "u=3"])
        #expect(try #require(inOrder[0].last) < #require(inOrder[1].first), "\(inOrder)")
    }

    @Test(arguments: Crossing.allCases) func theFieldIsPassedOn(crossing: Crossing) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let run = try await shared.curl(crossing, "/echo", "-H", "Priority: u=1, i")
            #expect(try ReceivedRequest(run).values("priority") == ["u=1, i"], "\(run)")
        }
    }
}
