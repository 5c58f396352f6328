import Foundation
import Synchronization

/// One line of the proxy's log: an event's stable name, and its fields as text.
struct LogEvent: Sendable, CustomStringConvertible {
    let name: String
    let fields: [String: String]

    /// Nil if the line is not a JSON object with an `event`.
    init?(line: String) {
        guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            let name = object["event"] as? String
        else { return nil }
        self.name = name
        fields = object.mapValues { value in
            (value as? [Any])?.map { "\($0)" }.joined(separator: ",") ?? "\(value)"
        }
    }

    subscript(field: String) -> String? { fields[field] }

    var description: String {
        "\(name) " + fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }
}

/// The events that a program has logged as JSON lines.
struct EventLog: Sendable {
    let lines: LineLog

    var all: [LogEvent] { lines.lines.compactMap(LogEvent.init) }

    func all(_ name: String) -> [LogEvent] {
        all.filter { $0.name == name }
    }

    /// The first event of that name that matches, past or future.
    func first(
        _ name: String, where fits: @escaping @Sendable (LogEvent) -> Bool = { _ in true }
    ) async throws -> LogEvent {
        try await lines.first(awaiting: "the event \(name)") { line in
            LogEvent(line: line).flatMap { $0.name == name && fits($0) ? $0 : nil }
        }
    }

    /// The `number`th event of that name, counted from 1, past or future.
    func first(
        _ name: String, number: Int, where fits: @escaping @Sendable (LogEvent) -> Bool = { _ in true }
    ) async throws -> LogEvent {
        let seen = Mutex(0)
        return try await first(name) { event in
            fits(event)
                && seen.withLock {
                    $0 += 1
                    return $0 == number
                }
        }
    }

    /// The first event of that name that names the client's program, after as many tries as that takes: a busy machine
    /// may look longer for it than the proxy waits.
    /// - Parameter ask: makes one such event.
    func firstNamingProgram(_ name: String, ask: () async throws -> Void) async throws -> LogEvent {
        for number in 1...50 {
            try await ask()
            let event = try await first(name, number: number)
            if event["client_exe"] != nil { return event }
        }
        throw TestBedError("no \(name) names the client's program")
    }

    /// The outcome of a reload, not counting the first `count` outcomes.
    func reloadOutcome(after count: Int) async throws -> LogEvent {
        let seen = Mutex(0)
        return try await lines.first(awaiting: "the outcome of a reload") { line in
            guard let event = LogEvent(line: line), event.isReloadOutcome else { return nil }
            return seen.withLock {
                $0 += 1
                return $0 > count
            } ? event : nil
        }
    }
}
