import PinproxyHTTP2
import Testing

@testable import PinproxySession

/// What task records say about shared connections, and what is reported about their peers.
@Suite(.timeLimit(.minutes(5))) struct HTTP2NoticeTests {
    private let bed: HTTP2Bench

    init() throws { bed = try HTTP2Bench() }

    @Test func aTryHasItsStreamAndTheReasonOfTheNext() throws {
        let (_, calm) = try bed.connect()
        let (_, full) = try bed.connect()
        let client = try bed.ask()
        try bed.run { full.requests.count == 1 }
        #expect(
            client.exchange.record.transactions.map(\.stream) == [1] && client.exchange.record.upstreamProtocol == "h2")
        full.requests[0].reset(.refusedStream)
        try bed.run { calm.requests.count == 1 }
        #expect(client.exchange.record.retried.map(\.retryReason) == [.unprocessed])
        #expect(client.exchange.record.transactions.map(\.stream) == [1, 1])
        calm.requests[0].answer("204")
        try bed.run { client.ending != nil }
    }

    /// Notices until the connection has ended.
    private func notices(_ act: (HTTP2Origin) -> Void) throws -> [HTTP2Notice] {
        var notices: [HTTP2Notice] = []
        let (upstream, origin) = try bed.connect()
        bed.bench.pool.noticed = { notice, connection in
            #expect(connection === upstream)
            notices.append(notice)
        }
        act(origin)
        origin.connection.pumpLater()
        try bed.run { upstream.isOver }
        return notices
    }

    @Test func aGOAWAYIsToldWithItsCode() throws {
        #expect(try notices { $0.connection.close(.enhanceYourCalm) } == [.goAway(.enhanceYourCalm, debug: "")])
        #expect(try notices { $0.connection.close() } == [.goAway(.noError, debug: "")])
    }

    @Test func aFloodIsToldOnceByItsName() throws {
        let told = try notices { origin in for number in 0..<2000 { origin.connection.session.ping(UInt64(number)) } }
        #expect(told == [.flood(.pings)])
    }

    @Test func whatKindOfFaultItIsFollowsFromItsCode() {
        #expect(HTTP2Notice(.protocolError, "why", nil) == .broke(.protocolError, "why"))
        #expect(HTTP2Notice(.enhanceYourCalm, "why", .resets) == .flood(.resets))
        #expect(HTTP2Notice(.internalError, "out of memory", nil) == nil, "nobody's fault")
    }
}
