internal import PinproxyDaemon
internal import PinproxySession

/// The tasks in flight as a readable table.
struct TaskTable {
    private static let titles = ["ID", "STATE", "AGE", "UP", "DOWN", "PROGRESS", "PROTOCOLS", "CLIENT", "REQUEST"]

    private let list: TaskList
    private let width: Int
    private let height: Int

    /// - Parameter height: lines that there is room for; what is left out is counted in the last.
    init(_ list: TaskList, width: Int = .max, height: Int = .max) {
        self.list = list
        self.width = width
        self.height = height
    }

    var text: String {
        guard !list.tasks.isEmpty else { return "no task is in flight" }
        let fits = list.tasks.count < height
        let shown = fits ? list.tasks : Array(list.tasks.prefix(max(1, height - 3)))
        let all = [Self.titles] + shown.map(Self.row)
        let columns = Self.columns(of: all, in: width)
        let rows = all.map { row in columns.map { row[$0] } }
        // The last column is as wide as it is.
        let widths = (0..<rows[0].count - 1).map { column in rows.map { $0[column].count }.max() ?? 0 }
        var lines = rows.map { row in
            let cells = zip(row, widths).map { $0.padded(to: $1) }
            return String((cells + row.suffix(1)).joined(separator: "  ").prefix(max(40, width)))
        }
        if !fits { lines.append("and \(list.tasks.count - shown.count) more") }
        return lines.joined(separator: "\n")
    }

    /// Columns to leave out, in this order, if the terminal is narrow. --json has all.
    private static let dispensable = ["PROTOCOLS", "CLIENT", "UP", "DOWN"]
    /// Columns that a request needs at least to show its host.
    private static let leastForRequest = 30

    /// The columns that fit beside the request's.
    private static func columns(of rows: [[String]], in width: Int) -> [Int] {
        var columns = Array(titles.indices)
        let widths = columns.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let request = min(widths[titles.count - 1], leastForRequest)
        for title in dispensable {
            let others = columns.dropLast().reduce(0) { $0 + widths[$1] + 2 }
            if width >= others + request { break }
            columns.removeAll { titles[$0] == title }
        }
        return columns
    }

    private static func row(_ task: TaskSummary) -> [String] {
        [
            "\(task.id)", task.state.rawValue, AmountText.time(task.age), AmountText.bytes(task.bytesUp),
            AmountText.bytes(task.bytesDown), progress(task), task.protocols, task.client.printable, task.request,
        ]
    }

    /// A progress bar of the body with a known length: the response's, else the request's.
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
