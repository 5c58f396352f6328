import HTTPWire
import Session
import Testing
import Transport

@testable import Proxy

@Suite struct BodyCollectorTests {
    private static let text = Array("user=x&tags=a".utf8)

    /// What became of a body, by name, and what it is.
    private func collect(
        _ body: [UInt8], announced framing: BodyFraming, limit: Int = 100, from budget: BodyBudget = BodyBudget()
    ) -> (outcome: String, body: [UInt8]) {
        let collector = BodyCollector(framing, limit: limit, from: budget)
        if collector.refusal == nil, case .ended = HeldBody(body).move(to: collector, readable: false),
            case .complete(let gathered, let reservation) = collector.whole
        {
            #expect(reservation.bytes >= gathered.count && reservation.bytes == budget.inUse && collector.carried == gathered.count)
            return ("complete", gathered)
        }
        return (collector.refusal.map { "\($0)" } ?? "incomplete", [])
    }

    @Test(arguments: [BodyFraming.length(13), .chunked]) func aBodyIsGathered(framing: BodyFraming) {
        #expect(collect(Self.text, announced: framing) == ("complete", Self.text))
        #expect(collect(Self.text, announced: framing, limit: 13).outcome == "complete")
    }

    /// Of a body for which there is no room not a byte is asked for.
    @Test(arguments: [BodyFraming.length(200_000), .chunked]) func aBodyWithoutRoomIsRefused(framing: BodyFraming) {
        let budget = BodyBudget(limit: 70_000)
        let body = [UInt8](repeating: 0x61, count: 200_000)
        #expect(collect(body, announced: framing, limit: 1 << 20, from: budget).outcome == "noBudget")
        #expect(budget.inUse == 0 && budget.refused == [.request: 1])
        let taken = BodyReservation(of: budget, for: .shared, bytes: 70_000)
        #expect(BodyCollector(framing, limit: 1 << 20, from: budget).refusal != nil)
        #expect(taken != nil && budget.inUse == 70_000)
    }

    @Test(arguments: [BodyFraming.length(14), .length(.max), .chunked]) func aBodyBeyondTheLimitIsTooLong(framing: BodyFraming) {
        #expect(collect(Self.text + [0], announced: framing, limit: 13).outcome == "tooLong")
        if framing != .chunked { #expect(BodyCollector(framing, limit: 13, from: BodyBudget()).refusal != nil) }
    }

    @Test func aRequestWithoutABodyNeedsNoRoom() {
        let budget = BodyBudget(limit: 0)
        #expect(collect([], announced: .none, from: budget) == ("complete", []))
        #expect(collect([], announced: .length(0), from: budget) == ("complete", []))
    }
}
