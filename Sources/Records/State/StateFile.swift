import FoundationEssentials
import Glibc
import Logging
import PinproxySecurity
import PinproxyTLS
import Synchronization

/// A JSON file in the state directory, replaced atomically.
package struct StateFile<Value: Codable & Sendable>: Sendable {
    package var path: String { "\(directory.path)/\(name)" }
    private let directory: TrustedDirectory
    private let name: String
    /// Several times the longest, chains of ``ChainHistory/maximumHosts`` hosts.
    private static var limit: Int { 256 << 20 }

    /// Permission bits before the umask.
    private let mode: UInt32

    package init(_ name: String, in directory: String, mode: UInt32 = 0o644) {
        self.directory = TrustedDirectory(directory)
        self.name = name
        self.mode = mode
    }

    package func read() throws(StateFileProblem) -> Value? {
        let bytes: [UInt8]
        do throws(FileProblem) {
            bytes = try directory.read(name, limit: Self.limit).bytes
        } catch .system(ENOENT) {
            return nil
        } catch {
            throw StateFileProblem(path: path, isBroken: error.isOfContents, cause: "it can't be read: \(error)")
        }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(bytes))
        } catch {
            throw StateFileProblem(
                path: path, isBroken: true, cause: "it is not in the form that this version writes: \(error)")
        }
    }

    package func write(_ value: Value) throws(StateFileProblem) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            try directory.write([UInt8](try encoder.encode(value)), to: name, mode: mode)
        } catch {
            throw StateFileProblem(path: path, isBroken: false, cause: "it can't be written: \(error)")
        }
    }

    /// Keeps a broken file for inspection. The new path; nil: failed.
    func moveAside() -> String? {
        let aside = name + ".broken"
        return directory.rename(name, to: aside) ? "\(directory.path)/\(aside)" : nil
    }
}

/// Why a file of the state directory couldn't be read or written.
package struct StateFileProblem: Error, Sendable, CustomStringConvertible {
    package let path: String
    /// It was read, and is malformed.
    package let isBroken: Bool
    package let cause: String

    package var description: String { "\(path): \(cause)" }
}

/// A value that outlives the process: changed by any thread, written by one. Its loss is logged, and stops nothing.
package final class KeptValue<Value: Codable & Sendable>: Sendable {
    private struct State {
        var value: Value
        var isChanged = false
        /// The last write failed, which was logged.
        var isUnwritable = false
    }

    private let file: StateFile<Value>
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter initial: without a usable file.
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
                    "effect":
                        "\(aside.map { "counting begins again; the old file is \($0)" } ?? "counting begins again")",
                ])
        }
        state = Mutex(State(value: value))
    }

    package var value: Value { state.withLock { $0.value } }

    func change<R: Sendable>(_ body: (inout Value) -> R) -> R {
        state.withLock { state in
            state.isChanged = true
            return body(&state.value)
        }
    }

    /// Writes a changed value, or any if `forced`. One thread. Returns the failure.
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
