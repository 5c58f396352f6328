internal import ArgumentParser
internal import Foundation
internal import Proxy
internal import Security
internal import TLS

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Whether a proxy is running, and match counts per pin.",
        discussion: """
            The proxy is found by its state directory. Its counts of the pins are at most a minute old; each \
            connection to a server counts once, whatever the number of requests on it. A connection that met a \
            pin counts for every pin of the entry that its chain meets, backups included; one that met none is a \
            miss, refused or (enforcement: report) let through. pinproxy lint says what the counts mean.

            --json prints one object: running, process, state_directory, last_reload (accepted or refused; for the \
            user that runs the proxy, and root); \
            entries, a list with entry, accepted, misses, last_miss, configured and pins, a list with pin, \
            matches, first, last, configured; times in Unix seconds.

            Exits 0 if a proxy is running, else 1.

            Examples:
              pinproxy status
              pinproxy status --state-directory /var/lib/pinproxy --json
            """)

    @OptionGroup var options: ConfigurationOptions
    @Flag(help: "For programs.") var json = false

    func run() throws {
        let files = StateFiles(directory: try options.stateDirectory(for: try? options.file()))
        let process = ProcessLock.holder(files.processID)
        // Who may not look at the process sees the rest all the same.
        let proxy = try? RunningProxy.find(files)
        let history: PinHistory
        do throws(StateFileProblem) {
            history = try StateFile<PinHistory>(PinHistory.fileName, in: files.directory).read() ?? PinHistory()
        } catch {
            throw CommandFailure("the counts of the pins can't be read: \(error)")
        }
        let report = StatusReport(
            process: process, directory: files.directory,
            reload: proxy?.reloadStatus()?.outcome,
            history: history)
        Standard.output(json ? JSONText.of(report) : report.text)
        if process == nil { throw CommandFailure(code: 1) }
    }
}

/// What `pinproxy status` prints.
private struct StatusReport: Encodable {
    struct Pin: Encodable {
        let pin: String
        let matches: Int
        let first: UnixTime?
        let last: UnixTime?
        let configured: Bool
    }

    struct Entry: Encodable {
        let entry: String
        let accepted: Int
        let misses: Int
        let lastMiss: UnixTime?
        let configured: Bool
        let pins: [Pin]
    }

    let running: Bool
    let process: pid_t?
    let stateDirectory: String
    let lastReload: String?
    let entries: [Entry]

    init(process: pid_t?, directory: String, reload: ReloadStatus.Outcome?, history: PinHistory) {
        running = process != nil
        self.process = process
        stateDirectory = directory
        lastReload = reload.map { if case .accepted = $0 { "accepted" } else { "refused" } }
        entries = history.entries.sorted { $0.key < $1.key }.map { name, record in
            Entry(
                entry: name, accepted: record.accepted, misses: record.misses, lastMiss: record.lastMiss,
                configured: record.removed == nil,
                pins: record.pins.sorted { $0.key < $1.key }.map { pin, record in
                    Pin(
                        pin: pin, matches: record.matches, first: record.first, last: record.last,
                        configured: record.removed == nil)
                })
        }
    }

    var text: String {
        var lines = [
            process.map { "running: process \($0), state directory \(stateDirectory)" }
                ?? "not running: no proxy is using the state directory \(stateDirectory)"
        ]
        if let lastReload {
            let remark = lastReload == "refused" ? "; pinproxy check says why" : ""
            lines.append("last reload: \(lastReload)\(remark)")
        }
        if entries.isEmpty { lines.append("no counts yet (they are up to a minute old)") }
        for entry in entries {
            let miss = entry.lastMiss.map { ", the last \(CalendarDate($0))" } ?? ""
            lines.append(
                "\(entry.entry): \(Count(entry.accepted, "connection")) met a pin, \(entry.misses) missed\(miss)"
                    + Self.remark(entry.configured))
            lines += entry.pins.map { pin in
                let dates =
                    if let first = pin.first, let last = pin.last {
                        " from \(CalendarDate(first)) to \(CalendarDate(last))"
                    } else { "" }
                return "  \(pin.pin): \(Count(pin.matches, "match", plural: "matches"))\(dates)\(Self.remark(pin.configured))"
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func remark(_ isConfigured: Bool) -> String { isConfigured ? "" : " (no longer configured)" }
}
