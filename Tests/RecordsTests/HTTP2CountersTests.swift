import PinproxyHTTP2
import PinproxySession
import Testing

@testable import PinproxyRecords

/// What peers of HTTP/2 connections did, counted with a limited set of labels.
@Suite struct HTTP2CountersTests {
    @Test func eachKindOfFloodHasACountOfClientsAndOriginsApart() {
        var counters = WorkerCounters()
        counters.count(.flood(.resets), of: .client)
        counters.count(.flood(.resets), of: .client)
        counters.count(.flood(.headBlock), of: .origin)
        let floods = counters.http2.floods(of: .client)
        #expect(floods.count == HTTP2Flood.allCases.count && floods.map(\.name) == floods.map(\.name).sorted())
        #expect(floods.filter { $0.count > 0 }.map { "\($0)" } == ["(name: \"resets\", count: 2)"])
        #expect(counters.http2.floods(of: .origin).filter { $0.count > 0 }.map(\.name) == ["head_block"])
    }

    @Test func aCodeThatAPeerInventsIsNoLabel() {
        var counters = WorkerCounters()
        for code in [0, 11, 13, 14, 4711, UInt32.max] {
            counters.count(.goAway(HTTP2ErrorCode(rawValue: code), debug: "x"), of: .origin)
        }
        #expect(
            counters.http2.goAways(of: .origin).map(\.code) == [
                "ENHANCE_YOUR_CALM", "HTTP_1_1_REQUIRED", "NO_ERROR", "other",
            ])
        #expect(counters.http2.goAways(of: .origin).last?.count == 3 && counters.http2.goAways(of: .client).isEmpty)
    }

    @Test func workersCountsAddUp() {
        var (one, other) = (WorkerCounters(), WorkerCounters())
        one.count(.broke(.protocolError, "why"), of: .client)
        other.count(.broke(.compressionError, "why"), of: .client)
        other.count(.goAway(.noError, debug: ""), of: .origin)
        one.add(other)
        #expect(one.http2.broken(by: .client) == 2 && one.http2.broken(by: .origin) == 0)
        #expect(one.http2.goAways(of: .origin).map(\.count) == [1])
    }
}
