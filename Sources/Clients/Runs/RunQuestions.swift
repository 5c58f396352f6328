import Synchronization

/// What one run is asked of connections that show no token: whether a process of the run holds them. Whoever began the run answers,
/// and may answer what it likes: a yes only tells it what is refused to a program of its own user, and lets nobody in.
///
/// A run that hasn't answered in time (it is stopped, or doesn't want to) is asked no more until it has: nobody waits for it twice.
package final class RunQuestions: Sendable {
    /// Questions that are under way at one time; for more connections it isn't known whose they are.
    static let limit = 256

    typealias Answer = @Sendable (_ isHeld: Bool) -> Void

    private struct State {
        var last: UInt64 = 0
        var open: [UInt64: Answer] = [:]
        /// Those of them that the run hasn't been sent.
        var unsent: [RunQuestion] = []
        /// Sent, and given up.
        var late: Set<UInt64> = []
        var isOver = false
    }

    private let state = Mutex(State())

    /// - Parameter answer: called once unless the question is given up, on any thread.
    /// - Returns: the question's number; nil: the run is not asked.
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

    /// The run has answered.
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
