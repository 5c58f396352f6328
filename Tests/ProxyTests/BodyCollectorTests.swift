import HTTPWire
import Testing
import Transport

@testable import Proxy

@Suite struct BodyCollectorTests {
    private static let text = Array("user=x&tags=a".utf8)
    private static let chunks = Array("5;n=\"v\\\"\"\r\nuser=\r\n8\r\nx&tags=a\r\n0;last\r\nX-Sum: 1\r\n\r\n".utf8)
    private static let next = Array("GET / HTTP/1.1\r\n\r\n".utf8)

    /// Shows pieces to a collector as a connection does, what was spent taken away.
    /// - Returns: the body, and what follows it.
    private func collect(
        _ pieces: [ArraySlice<UInt8>], _ framing: BodyFraming, limit: Int = 100, from budget: BodyBudget = BodyBudget()
    ) throws -> (body: [UInt8], rest: [UInt8]) {
        var collector = try #require(BodyCollector(framing, limit: limit, from: budget))
        var received: [UInt8] = []
        for piece in pieces {
            received += piece
            switch received.withUnsafeBytes({ collector.look(at: $0) }) {
            case .incomplete(let taken): received.removeFirst(taken)
            case .complete(let body, let reservation, let taken):
                #expect(reservation.bytes >= body.count && reservation.bytes == budget.inUse)
                return (body, Array(received[taken...]))
            case .malformed(let error): throw error
            case .tooLong: throw Unfit(text: "too long")
            case .noBudget: throw Unfit(text: "no budget")
            }
        }
        throw Unfit(text: "incomplete")
    }

    private struct Unfit: Error, Equatable { let text: String }

    @Test func everySplitGivesTheSameBody() throws {
        for (framing, bytes) in [(BodyFraming.length(13), Self.text), (.chunked, Self.chunks)] {
            for split in 0...bytes.count {
                let first = bytes[..<split]
                let second = bytes[split...] + Self.next
                if split < bytes.count {
                    #expect(throws: Unfit(text: "incomplete")) { try collect([first], framing) }
                }
                let (body, rest) = try collect(split == bytes.count ? [first + second] : [first, second], framing)
                #expect(body == Self.text && rest == Self.next, "split at \(split)")
            }
            let single = try collect(bytes.indices.map { bytes[$0...$0] } + [Self.next[...]], framing)
            #expect(single.body == Self.text)
        }
    }

    /// What chunks take beside the body is not kept, and nothing is kept twice.
    @Test(arguments: [(BodyFraming.chunked, Self.chunks), (.length(13), Self.text)])
    func everyByteIsTaken(framing: BodyFraming, bytes: [UInt8]) throws {
        var collector = try #require(BodyCollector(framing, limit: 100, from: BodyBudget()))
        #expect(!collector.hasBegun)
        for byte in bytes.dropLast() {
            guard case .incomplete(taken: 1) = [byte].withUnsafeBytes({ collector.look(at: $0) }) else {
                Issue.record("kept")
                return
            }
            #expect(collector.hasBegun)
        }
    }

    /// Of a body for which there is no room not a byte is asked for.
    @Test(arguments: [BodyFraming.length(200_000), .chunked]) func aBodyWithoutRoomIsRefused(framing: BodyFraming) throws {
        let budget = BodyBudget(limit: 70_000)
        let body = [UInt8](repeating: 0x61, count: 200_000)
        let sent = framing == .chunked ? Array("30D40\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8) : body
        let pieces = stride(from: 0, to: sent.count, by: 10_000).map { sent[$0..<min($0 + 10_000, sent.count)] }
        #expect(throws: Unfit(text: "no budget")) { try collect(pieces, framing, limit: 1 << 20, from: budget) }
        #expect(budget.inUse == 0 && budget.refused == [.request: 1])
        let taken = BodyReservation(of: budget, for: .shared, bytes: 70_000)
        #expect(throws: Unfit(text: "no budget")) { try collect([[]], framing, limit: 1 << 20, from: budget) }
        #expect(taken != nil && budget.inUse == 70_000)
    }

    @Test func aBodyBeyondTheLimitIsTooLong() throws {
        #expect(try collect([Self.text[...]], .length(13), limit: 13).body == Self.text)
        #expect(try collect([Self.chunks[...]], .chunked, limit: 13).body == Self.text)
        #expect(throws: Unfit(text: "too long")) { try collect([[]], .length(14), limit: 13) }
        #expect(throws: Unfit(text: "too long")) { try collect([[]], .length(.max), limit: 13) }
        #expect(throws: Unfit(text: "too long")) { try collect([Self.chunks[...]], .chunked, limit: 12) }
    }

    @Test func chunksThatAreNoneAreMalformed() {
        #expect(throws: WireError.self) { try collect([Array("5\r\nabcdeXX".utf8)[...]], .chunked) }
        #expect(throws: WireError.self) { try collect([Array("-1\r\n".utf8)[...]], .chunked) }
    }

    @Test func aRequestWithoutABodyHasNothingToCollect() {
        #expect(BodyCollector(.none, limit: 1, from: BodyBudget()) == nil)
        #expect(BodyCollector(.length(0), limit: 1, from: BodyBudget()) == nil)
    }
}
