import Foundation
import Synchronization

/// A pipe for the proxy's log with a reader that stops. A pager, a full disk behind `tee`, or a log collector that
/// hangs does the same.
final class StalledPipe: Sendable {
    /// For the proxy. Small, so that few lines fill it.
    let writing: CInt
    private let reading: CInt
    let lines = LineLog()
    private let isHanded = Atomic(false)
    private let isCollected = Atomic(false)

    /// Makes the inherited descriptor the standard error of the program that follows.
    static let launcher = ["/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&3 3>&-"]

    init() throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw TestBedError("pipe: errno \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (reading, writing) = (ends[0], ends[1])
        // F_SETPIPE_SZ, which Glibc's module leaves out.
        _ = fcntl(writing, 1031, 4096)
    }

    deinit {
        if isHanded.exchange(true, ordering: .relaxed) == false { close(writing) }
        if isCollected.exchange(true, ordering: .relaxed) == false { close(reading) }
    }

    /// Closes this process's copy of the writing end, once the proxy has its own.
    func handOver() {
        if isHanded.exchange(true, ordering: .relaxed) == false { close(writing) }
    }

    /// Reads up to the first event of that name, and no further.
    func read(upTo name: String) async throws -> LogEvent {
        let reading = reading
        let text = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try Self.line(from: reading) { $0.contains("\"\(name)\"") } })
            }
        }
        guard let event = LogEvent(line: text) else { throw TestBedError("not an event: \(text)") }
        return event
    }

    private static func line(from descriptor: CInt, where fits: (String) -> Bool) throws -> String {
        var line: [UInt8] = []
        while true {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 30_000) == 1 else { throw TestBedError("nothing is logged") }
            var byte: UInt8 = 0
            guard Glibc.read(descriptor, &byte, 1) == 1 else { throw TestBedError("the log has ended") }
            if byte != UInt8(ascii: "\n") {
                line.append(byte)
                continue
            }
            let text = String(decoding: line, as: UTF8.self)
            if fits(text) { return text }
            line = []
        }
    }

    /// Closes the reader, so that writes fail.
    func vanish() {
        if isCollected.exchange(true, ordering: .relaxed) == false { close(reading) }
    }

    /// Resumes reading, and collects all further lines in ``lines``.
    func proceed() {
        guard isCollected.exchange(true, ordering: .relaxed) == false else { return }
        lines.collect(from: reading)
    }
}
