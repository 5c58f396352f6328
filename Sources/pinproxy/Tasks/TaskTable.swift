internal import Daemon
internal import Session

/// Tasks as a table, a line each.
struct TaskTable {
    private static let titles = ["ID", "STATE", "AGE", "UP", "DOWN", "PROGRESS", "CLIENT", "REQUEST"]

    private let list: TaskList
    private let width: Int
    private let height: Int

    /// - Parameters:
    ///   - width: columns that a line may take.
    ///   - height: lines that there is room for; what is left out is counted in the last.
    init(_ list: TaskList, width: Int = .max, height: Int = .max) {
        self.list = list
        self.width = width
        self.height = height
    }

    var text: String {
        guard !list.tasks.isEmpty else { return "no task is under way" }
        let fits = list.tasks.count < height
        let shown = fits ? list.tasks : Array(list.tasks.prefix(max(1, height - 3)))
        let rows = [Self.titles] + shown.map(Self.row)
        // The last column is as wide as it is.
        let widths = (0..<Self.titles.count - 1).map { column in rows.map { $0[column].count }.max() ?? 0 }
        var lines = rows.map { row in
            let cells = zip(row, widths).map { $0.padded(to: $1) }
            return String((cells + row.suffix(1)).joined(separator: "  ").prefix(max(40, width)))
        }
        if !fits { lines.append("and \(list.tasks.count - shown.count) more") }
        return lines.joined(separator: "\n")
    }

    private static func row(_ task: TaskSummary) -> [String] {
        [
            "\(task.id)", task.state.rawValue, AmountText.time(task.age), AmountText.bytes(task.bytesUp),
            AmountText.bytes(task.bytesDown), progress(task), task.client.printable, task.request,
        ]
    }

    /// A bar of what has come of the body whose length is known: the response's, else the request's.
    static func progress(_ task: TaskSummary) -> String {
        let part: (UInt64, UInt64)? =
            if let total = task.totalDown, total > 0 {
                (task.bytesDown, total)
            } else if let total = task.totalUp, total > 0, task.status == 0 {
                (task.bytesUp, total)
            } else { nil }
        guard let (done, total) = part else { return task.phase }
        // Heads are counted too: a little more than the body may have been carried.
        let share = min(1, Double(done) / Double(total))
        let full = Int(share * 10)
        let bar = String(repeating: "#", count: full) + String(repeating: "-", count: 10 - full)
        return "[\(bar)] \(Int(share * 100))%"
    }
}

extension TaskSummary {
    /// What was asked, on one line fit for a terminal.
    var request: String {
        let authority = host.isEmpty ? "" : "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        return "\(method) \(authority)\(path)".printable
    }
}

/// Amounts for people.
enum AmountText {
    static func bytes(_ count: UInt64) -> String {
        var value = Double(count)
        for unit in ["B", "KiB", "MiB"] {
            if value < 1024 { return unit == "B" ? "\(count) B" : "\(value.text(decimals: 1)) \(unit)" }
            value /= 1024
        }
        return "\(value.text(decimals: 1)) GiB"
    }

    static func time(_ seconds: Double) -> String {
        let whole = Int(seconds)
        if whole < 60 { return "\(seconds.text(decimals: 1))s" }
        if whole < 3600 { return "\(whole / 60)m\(whole % 60)s" }
        return "\(whole / 3600)h\(whole % 3600 / 60)m"
    }
}
