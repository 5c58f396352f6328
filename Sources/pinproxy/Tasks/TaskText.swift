internal import Session

/// All of one task, a line each fact.
struct TaskText {
    private let task: TaskSummary

    init(_ task: TaskSummary) { self.task = task }

    var text: String {
        var lines = [
            "task \(task.id): \(task.kind), \(task.state.rawValue), \(task.phase)", "request: \(task.request)",
            "client: \(task.client)\(Self.who(task))", "age: \(AmountText.time(task.age))",
            "up: \(Self.amount(task.bytesUp, task.totalUp))", "down: \(Self.amount(task.bytesDown, task.totalDown))",
        ]
        if task.status != 0 { lines.append("status: \(task.status)") }
        if let entry = task.entry { lines.append("entry: \(entry)") }
        if let pin = task.pin { lines.append("pin: \(pin)") }
        if let cause = task.cause { lines.append("cause: \(cause)") }
        for hop in task.hops ?? [] { lines.append("followed: \(hop.status) to \(hop.to)") }
        for (number, transaction) in task.transactions.enumerated() {
            lines.append("transaction \(number + 1): \(Self.way(transaction))")
            lines += Self.times(transaction)
        }
        return lines.map { $0.printable(longest: 1000) }.joined(separator: "\n")
    }

    /// By the kernel's word, as far as it is known.
    private static func who(_ task: TaskSummary) -> String {
        guard let user = task.clientUser else { return "" }
        let process = task.clientProcess.map { "process \($0)" + (task.clientExecutable.map { " (\($0))" } ?? "") }
        return [": " + (task.clientUserName ?? "user \(user)"), process, task.clientUnit].compactMap { $0 }.joined(separator: ", ")
    }

    private static func amount(_ done: UInt64, _ total: UInt64?) -> String {
        AmountText.bytes(done) + (total.map { ", of a body of \(AmountText.bytes($0))" } ?? "")
    }

    private static func way(_ transaction: TaskSummary.Transaction) -> String {
        let ends = [transaction.localAddress, transaction.remoteAddress].compactMap { $0 }.joined(separator: " to ")
        let name = transaction.networkProtocol.map { ", \($0)" } ?? ""
        return "\(ends)\(name), \(transaction.reused ? "reused" : "a new connection")"
    }

    private static func times(_ transaction: TaskSummary.Transaction) -> [String] {
        let times: [(String, Double?)] = [
            ("name lookup took", transaction.nameLookup), ("connect took", transaction.connect), ("TLS took", transaction.tls),
            ("began at", transaction.began), ("request sent at", transaction.requestSent),
            ("first byte at", transaction.firstByte), ("last byte at", transaction.lastByte),
        ]
        return times.compactMap { name, time in time.map { "  \(name) \(($0 * 1000).text(decimals: 3)) ms" } }
    }
}
