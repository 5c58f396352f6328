import Testing

@testable import PinproxyCaching

/// The module compared with a model that follows RFC 9111 section by section: random requests, responses and clock
/// steps.
@Suite struct ReferenceTests {
    private static let lanes = 20
    private static let sequences = 500
    private static let requests = 5

    @Test(arguments: 0..<lanes) func theModuleDoesWhatTheModelDoes(lane: Int) throws {
        for number in 0..<Self.sequences {
            let seed = UInt64(lane * Self.sequences + number)
            guard try !holds(seed) else { continue }
            var log: [String] = []
            _ = try holds(seed) { log.append($0) }
            Issue.record("seed \(seed)\n\(log.joined(separator: "\n"))")
            return
        }
    }

    /// Whether both do the same. The report ends with the first difference.
    private func holds(_ seed: UInt64, say: ((String) -> Void)? = nil) throws -> Bool {
        var messages = RandomMessages(seed: seed)
        let isShared = seed % 2 == 1
        var (model, room) = (ReferenceCache(isShared: isShared), ModuleCache(isShared: isShared))
        var now: Int64 = 1_800_000_000
        say?(isShared ? "shared" : "private")
        for _ in 0..<Self.requests {
            now += messages.step()
            let request = messages.request(at: now)
            let outcome = model.outcome(of: request, at: now)
            let got = try room.outcome(of: request, at: now)
            say?("at \(now):\n\(request.text)model: \(outcome)\nroom:  \(got)")
            guard outcome == got else { return false }
            guard case .forwarded(let validators) = outcome else { continue }
            let requested = now
            now += messages.one(of: [0, 0, 0, 1, 3, -2])
            let response = messages.response(to: request, confirming: validators, at: now)
            let modelled = model.receive(response, to: request, with: validators, requested: requested, at: now)
            let did = try room.receive(response, to: request, with: validators, requested: requested, at: now)
            let (expected, kept) = (model.kept, room.kept)
            say?("at \(now):\n\(response.text)model: \(modelled), \(expected)\nroom:  \(did), \(kept)")
            guard modelled == did, expected == kept else { return false }
        }
        return true
    }

    /// Every possible outcome occurs in some of the ten thousand sequences: a model that never stores would agree with
    /// a module that doesn't either.
    @Test func theSequencesReachEverything() throws {
        var reached: Set<String> = []
        for seed in UInt64(0)..<500 {
            var messages = RandomMessages(seed: seed)
            var model = ReferenceCache(isShared: seed % 2 == 1)
            var now: Int64 = 1_800_000_000
            for _ in 0..<Self.requests {
                now += messages.step()
                let request = messages.request(at: now)
                var outcomes = [model.outcome(of: request, at: now)]
                if case .forwarded(let validators) = outcomes[0] {
                    if !validators.isEmpty { reached.insert("confirming") }
                    let response = messages.response(to: request, confirming: validators, at: now)
                    outcomes.append(
                        model.receive(response, to: request, with: validators, requested: now, at: now))
                    if case .served = outcomes[1] { reached.insert(response.status == 304 ? "confirmed" : "stood in") }
                }
                for case .served(let served) in outcomes { reached.insert("\(served.status)") }
                if outcomes.contains(.unavailable) { reached.insert("504") }
                if outcomes.contains(.again) { reached.insert("again") }
                for kept in model.kept where kept.status == 206 { reached.insert("part") }
            }
        }
        let all: Set = ["confirming", "confirmed", "stood in", "200", "206", "304", "416", "504", "again", "part"]
        #expect(reached.isSuperset(of: all), "\(all.subtracting(reached)) not reached")
    }
}
