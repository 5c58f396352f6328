import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport
import Testing

@testable import PinproxyClients

@Suite struct BodyCollectorTests {
    private static let text = Array("user=x&tags=a".utf8)

    /// The outcome's name, and the body.
    private func collect(
        _ body: [UInt8], announced length: BodyLength, limit: Int = 100, from budget: BodyBudget = BodyBudget()
    ) -> (outcome: String, body: [UInt8]) {
        let collector = BodyCollector(length, limit: limit, from: budget)
        if collector.refusal == nil, case .ended = HeldBody(body).move(to: collector, readable: false),
            case .complete(let gathered, let reservation) = collector.whole
        {
            #expect(
                reservation.bytes >= gathered.count && reservation.bytes == budget.inUse
                    && collector.carried == gathered.count)
            return ("complete", gathered)
        }
        return (collector.refusal.map { "\($0)" } ?? "incomplete", [])
    }

    @Test(arguments: [BodyLength.known(13), .unknown]) func aBodyIsGathered(length: BodyLength) {
        #expect(collect(Self.text, announced: length) == ("complete", Self.text))
        #expect(collect(Self.text, announced: length, limit: 13).outcome == "complete")
    }

    /// If there is no space for a body, not one byte is requested.
    @Test(arguments: [BodyLength.known(200_000), .unknown]) func aBodyWithoutRoomIsRefused(length: BodyLength) {
        let budget = BodyBudget(limit: 70_000)
        let body = [UInt8](repeating: 0x61, count: 200_000)
        #expect(collect(body, announced: length, limit: 1 << 20, from: budget).outcome == "noBudget")
        #expect(budget.inUse == 0 && budget.refused == [.request: 1])
        let taken = BodyReservation(of: budget, for: .shared, bytes: 70_000)
        #expect(BodyCollector(length, limit: 1 << 20, from: budget).refusal != nil)
        #expect(taken != nil && budget.inUse == 70_000)
    }

    @Test(arguments: [BodyLength.known(14), .known(.max), .unknown]) func aBodyBeyondTheLimitIsTooLong(
        length: BodyLength
    ) {
        #expect(collect(Self.text + [0], announced: length, limit: 13).outcome == "tooLong")
        if length != .unknown { #expect(BodyCollector(length, limit: 13, from: BodyBudget()).refusal != nil) }
    }

    @Test func aRequestWithoutABodyNeedsNoRoom() {
        let budget = BodyBudget(limit: 0)
        #expect(collect([], announced: .none, from: budget) == ("complete", []))
        #expect(collect([], announced: .known(0), from: budget) == ("complete", []))
    }
}
