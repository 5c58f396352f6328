import Dispatch
import Synchronization

/// A value that is set once and that any number of tasks can wait for.
final class Once<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiting: [CheckedContinuation<Value, Never>] = []
    }

    private let state = Mutex(State())

    /// The value, if it is set.
    var settled: Value? { state.withLock { $0.value } }

    /// Waits for the value.
    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let known = state.withLock { state in
                    if state.value == nil { state.waiting.append(continuation) }
                    return state.value
                }
                if let known { continuation.resume(returning: known) }
            }
        }
    }

    /// Sets the value; a second call changes nothing.
    func settle(_ value: Value) {
        let waiting = state.withLock { state in
            guard state.value == nil else { return [CheckedContinuation<Value, Never>]() }
            state.value = value
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: value) }
    }

    /// Waits for the value, and fails with what was awaited when `bound` has passed.
    func value(within bound: DispatchTimeInterval, awaiting what: String) async throws -> Value {
        let first = Once<Value?>()
        DispatchQueue.global().asyncAfter(deadline: .now() + bound) { first.settle(nil) }
        Task { first.settle(await value) }
        guard let value = await first.value else { throw TestBedError("waited in vain for \(what)") }
        return value
    }
}

/// A failure of the test bed itself: a peer didn't start, or a wait timed out.
struct TestBedError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
