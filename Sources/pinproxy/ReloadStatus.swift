internal import Configuration
internal import Foundation

/// What became of the last time that the running proxy read its files: written by it, read by
/// `pinproxy reload`.
///
/// ```
/// 4711 3
/// refused
/// /etc/pinproxy/pins.yaml:12:7: error: unknown key "pin" …
/// ```
/// The first line is the process and how often it has read its files, the rest the outcome.
struct ReloadStatus: Equatable {
    enum Outcome: Equatable {
        case accepted
        /// The old configuration is still in force. One problem a line.
        case refused(String)
    }

    var process: pid_t
    var count: Int
    var outcome: Outcome

    init(process: pid_t, count: Int, outcome: Outcome) {
        self.process = process
        self.count = count
        self.outcome = outcome
    }

    init?(_ text: String) {
        let lines = text.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count >= 2 else { return nil }
        let numbers = lines[0].split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 2, let process = pid_t(exactly: numbers[0]) else { return nil }
        self.process = process
        count = numbers[1]
        switch lines[1] {
        case "accepted": outcome = .accepted
        case "refused":
            outcome = .refused((lines.count > 2 ? String(lines[2]) : "").trimmingCharacters(in: .newlines))
        default: return nil
        }
    }

    var text: String {
        switch outcome {
        case .accepted: "\(process) \(count)\naccepted\n"
        case .refused(let problems): "\(process) \(count)\nrefused\n\(problems)\n"
        }
    }

    static func read(_ path: String) -> ReloadStatus? {
        (try? String(contentsOfFile: path, encoding: .utf8)).flatMap { ReloadStatus($0) }
    }
}
