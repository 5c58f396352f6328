import Testing

@testable import PinproxyDecoding

@Suite struct DecoderStateTests {
    /// One path: the state, whether a body still lacks its outcome, and what was done to the process.
    private struct Walk: Hashable {
        var state = DecoderState()
        /// A process starts with a body.
        var hasBody = true
        var kills = 0
        var isBuried = false

        /// - Returns: false if the event is impossible now: only an idle process gets a body.
        mutating func take(_ event: DecoderState.Event) -> Bool {
            if event == .given, state.phase != .idle { return false }
            let before = state
            switch state.received(event) {
            case .none: break
            case .send: if event == .given { hasBody = true }
            case .finish:
                #expect(hasBody && before.phase == .working && event == .answered)
                hasBody = false
            case .kill:
                #expect(before.phase != .gone && kills == 0)
                kills += 1
                hasBody = false
            case .await:
                #expect(event == .closed && kills == 0)
                kills += 1
            case .bury(let saysHow):
                #expect(event == .ended && !isBuried)
                // A process killed for a reason has reported it.
                #expect(saysHow == (before.phase != .dying))
                if saysHow { hasBody = false }
                isBuried = true
            }
            return true
        }
    }

    /// Visits every state that some sequence of events reaches.
    @Test func inAnyOrderABodyIsAnsweredOnceAndAProcessIsBuriedOnce() {
        var seen: Set<Walk> = []
        var open = [Walk()]
        while let walk = open.popLast() {
            guard seen.insert(walk).inserted else { continue }
            #expect(
                walk.hasBody == [.starting, .working, .fallen].contains(walk.state.phase) || walk.state.phase == .fallen
            )
            #expect(walk.isBuried == (walk.state.phase == .gone))
            if walk.state.phase == .gone { #expect(!walk.hasBody) }
            for event in DecoderState.Event.allCases {
                var next = walk
                if next.take(event) { open.append(next) }
            }
            // In every case the kernel's notice ends it.
            var last = walk
            _ = last.take(.ended)
            #expect(last.state.phase == .gone && !last.hasBody)
        }
        #expect(Set(seen.map(\.state.phase)) == Set(DecoderState.Phase.allCases))
    }

    @Test func aBodyIsSentOnceTheProcessIsReady() {
        var state = DecoderState()
        #expect(state.isNew && state.received(.ready) == .send && !state.isNew)
        #expect(state.received(.answered) == .finish)
        #expect(state.received(.given) == .send && state.received(.late) == .kill(.late))
        #expect(state.received(.answered) == .none && state.received(.ended) == .bury(saysHow: false))
    }

    @Test func whatNobodyAskedForEndsIt() {
        for event in [DecoderState.Event.answered, .nonsense] {
            var starting = DecoderState()
            #expect(starting.received(event) == .kill(.nonsense))
            var idle = DecoderState()
            _ = idle.received(.ready)
            _ = idle.received(.answered)
            #expect(idle.received(event) == .kill(.nonsense))
        }
        var working = DecoderState()
        _ = working.received(.ready)
        #expect(working.received(.ready) == .kill(.nonsense))
    }
}
