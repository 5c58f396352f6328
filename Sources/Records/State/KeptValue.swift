import Logging
import Synchronization

/// A value that outlives the process: read from its file at the start, changed by any thread, written
/// back from time to time by one. Losing it is never a reason to refuse service: problems are logged.
package final class KeptValue<Value: Codable & Sendable>: Sendable {
    private struct State {
        var value: Value
        var isChanged = false
        /// The last attempt to write failed, and that was said.
        var isUnwritable = false
    }

    private let file: StateFile<Value>
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter initial: what to begin with where there is no file, or a broken one.
    init(_ initial: Value, in file: StateFile<Value>, logger: Logger) {
        self.file = file
        self.logger = logger
        var value = initial
        do throws(StateFileProblem) {
            value = try file.read() ?? initial
        } catch {
            let aside = error.isBroken ? file.moveAside() : nil
            logger.warning(
                "state.broken",
                metadata: [
                    "file": "\(error.path)", "cause": "\(error.cause)",
                    "effect": "\(aside.map { "counting begins again; the old file is \($0)" } ?? "counting begins again")",
                ])
        }
        state = Mutex(State(value: value))
    }

    package var value: Value { state.withLock { $0.value } }

    /// Changes the value. Any thread.
    func change<R: Sendable>(_ body: (inout Value) -> R) -> R {
        state.withLock { state in
            state.isChanged = true
            return body(&state.value)
        }
    }

    /// Writes the value if it has changed since, or if that is `forced`. One thread.
    /// - Returns: why it can't be written, if it can't.
    @discardableResult
    func save(forced: Bool = false) -> StateFileProblem? {
        let changed: Value? = state.withLock { state in
            guard state.isChanged || forced else { return nil }
            state.isChanged = false
            return state.value
        }
        guard let changed else { return nil }
        do throws(StateFileProblem) {
            try file.write(changed)
            state.withLock { $0.isUnwritable = false }
            return nil
        } catch {
            let isNew = state.withLock { state in
                defer { (state.isUnwritable, state.isChanged) = (true, true) }
                return !state.isUnwritable
            }
            if isNew {
                logger.warning("state.unwritable", metadata: ["file": "\(error.path)", "cause": "\(error.cause)"])
            }
            return error
        }
    }
}
