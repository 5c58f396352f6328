import Foundation
import Synchronization

/// The lines that a program has written so far, and a way to wait for one.
final class LineLog: Sendable {
    private struct State {
        var lines: [String] = []
        var partial: [UInt8] = []
        /// Where they come from; nil: not known yet, or closed.
        var descriptor: CInt?
        var isComplete = false
        /// Why reading failed, if it did.
        var failure: String?
        /// Each is called with every line, and with nil at the end, until it returns true.
        var watchers: [@Sendable (String?) -> Bool] = []
    }

    private let state = Mutex(State())
    private let finished = Once<Void>()

    /// All lines written so far. What a peer wrote before it answered is included once the answer is there.
    var lines: [String] {
        state.withLock { state in
            _ = Self.takeWhatIsThere(&state)
            return state.lines
        }
    }

    /// All that was written, once the program has closed its end.
    var text: String {
        get async { await complete.joined(separator: "\n") }
    }

    /// The same, by lines.
    var complete: [String] {
        get async {
            await finished.value
            return lines
        }
    }

    /// The first line, past or future, that `pick` turns into a value.
    func first<Value: Sendable>(
        awaiting what: String, pick: @escaping @Sendable (String) -> Value?
    ) async throws -> Value {
        let found = Once<Result<Value, TestBedError>>()
        let watch: @Sendable (String?) -> Bool = { line in
            guard let line else {
                found.settle(.failure(TestBedError("the program ended before \(what)")))
                return true
            }
            guard let value = pick(line) else { return false }
            found.settle(.success(value))
            return true
        }
        state.withLock { state in
            if state.lines.contains(where: watch) || (state.isComplete && watch(nil)) { return }
            state.watchers.append(watch)
        }
        do {
            return try await found.value(within: .seconds(120), awaiting: what).get()
        } catch let error as TestBedError {
            let failure = state.withLock { $0.failure }.map { "\n\($0)" } ?? ""
            throw TestBedError("\(error)\(failure)\nwritten so far:\n\(lines.suffix(40).joined(separator: "\n"))")
        }
    }

    /// Reads the descriptor to its end on a separate thread, and closes it.
    func collect(from descriptor: CInt) {
        state.withLock { $0.descriptor = descriptor }
        Thread.detachNewThread { [self] in
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            repeat {
                // Waits without the lock, so that `lines` can read what is there meanwhile.
                while poll(&ready, 1, -1) < 0, errno == EINTR {}
            } while state.withLock({ Self.takeWhatIsThere(&$0) })
            state.withLock { $0.descriptor = nil }
            close(descriptor)
            finished.settle(())
        }
    }

    /// Reads as much as a pipe holds, without waiting. False at the end.
    private static func takeWhatIsThere(_ state: inout State) -> Bool {
        guard let descriptor = state.descriptor else { return true }
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&ready, 1, 0) > 0 else { return true }
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            let got = read(descriptor, buffer.baseAddress, buffer.count)
            if got < 0 { state.failure = "read: \(String(cString: strerror(errno)))" }
            count = max(got, 0)
        }
        append(bytes[...], to: &state)
        return !bytes.isEmpty
    }

    private static func append(_ bytes: ArraySlice<UInt8>, to state: inout State) {
        state.partial += bytes
        var fresh = state.partial.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        state.partial = Array(bytes.isEmpty ? [] : fresh.removeLast())
        if bytes.isEmpty, fresh.last?.isEmpty == true { fresh.removeLast() }
        for bytes in fresh {
            let line = String(decoding: bytes, as: UTF8.self)
            state.lines.append(line)
            state.watchers.removeAll { $0(line) }
        }
        if bytes.isEmpty {
            state.isComplete = true
            state.watchers.removeAll { $0(nil) }
        }
    }
}
