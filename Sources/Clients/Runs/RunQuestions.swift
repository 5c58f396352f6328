import Synchronization

/// Asks one run whether its processes hold connections without a token. A yes grants nothing: it only shows the run's
/// starter what is refused to a program of the same user. A run that is late (stopped, or unwilling) is not asked again
/// until it answers.
package final class RunQuestions: Sendable {
    /// Open questions; more connections stay unknown.
    static let limit = 256

    typealias Answer = @Sendable (_ isHeld: Bool) -> Void

    private struct State {
        var last: UInt64 = 0
        var open: [UInt64: Answer] = [:]
        var unsent: [RunQuestion] = []
        /// Questions that were sent and timed out.
        var late: Set<UInt64> = []
        var isOver = false
    }

    private let state = Mutex(State())

    /// - Parameter answer: called once unless the question is given up, on any thread.
    /// - Returns: the question's number; nil: not asked.
    func ask(about socket: UInt64, _ answer: @escaping Answer) -> UInt64? {
        state.withLock { state in
            guard !state.isOver, state.late.isEmpty, state.open.count < Self.limit else { return nil }
            state.last += 1
            state.open[state.last] = answer
            state.unsent.append(RunQuestion(number: state.last, socket: socket))
            return state.last
        }
    }

    func giveUp(_ number: UInt64) {
        state.withLock { state in
            guard state.open.removeValue(forKey: number) != nil else { return }
            if let place = state.unsent.firstIndex(where: { $0.number == number }) {
                state.unsent.remove(at: place)
            } else {
                state.late.insert(number)
            }
        }
    }

    package func takeUnsent() -> [RunQuestion] {
        state.withLock { state in
            defer { state.unsent = [] }
            return state.unsent
        }
    }

    var hasUnsent: Bool { state.withLock { !$0.unsent.isEmpty } }

    /// - Returns: false: it was not asked that.
    package func received(_ answer: RunAnswer) -> Bool {
        let (wasAsked, open): (Bool, Answer?) = state.withLock { state in
            guard !state.unsent.contains(where: { $0.number == answer.number }) else { return (false, nil) }
            if let open = state.open.removeValue(forKey: answer.number) { return (true, open) }
            return (state.late.remove(answer.number) != nil, nil)
        }
        open?(answer.isHeld)
        return wasAsked
    }

    package func end() {
        let open = state.withLock { state in
            defer { state = State(last: state.last, isOver: true) }
            return state.open.values
        }
        for answer in open { answer(false) }
    }
}
