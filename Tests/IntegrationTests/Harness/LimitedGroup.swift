import Foundation

/// A control group (version 1) for one proxy.
struct LimitedGroup {
    enum Controller: String { case memory, pids }

    /// The control group of this process; nil if no group can be created in it.
    private static func parent(_ controller: Controller) -> String? {
        let text = (try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n").map {
            $0.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        }
        guard let path = lines.first(where: { $0.count == 3 && $0[1] == controller.rawValue })?[2] else { return nil }
        let folder = "/sys/fs/cgroup/\(controller)\(path)"
        return access(folder, W_OK) == 0 && geteuid() == 0 ? folder : nil
    }

    static func isAvailable(_ controller: Controller) -> Bool { parent(controller) != nil }

    private let folder: String

    init(_ controller: Controller) throws {
        folder = "\(Self.parent(controller) ?? "")/pinproxy-test-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    }

    /// Executes a program within it.
    var launcher: [String] { ["/bin/sh", "-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"", folder] }

    /// The memory in use, without what the kernel reclaims first.
    private func used() throws -> Int {
        let usage = try number("memory.usage_in_bytes")
        let stat = try String(contentsOfFile: "\(folder)/memory.stat", encoding: .utf8)
        let inactive = stat.firstMatch(of: /total_inactive_file ([0-9]+)/).flatMap { Int($0.output.1) } ?? 0
        return usage - inactive
    }

    /// Sets the memory limit so that the memory in use is this many thousandths of it.
    func set(taken share: Int) throws { try write("\(used() / share * 1000)", to: "memory.limit_in_bytes") }

    /// Forbids further threads and processes.
    func stopThreads() throws { try write("\(number("pids.current"))", to: "pids.max") }

    func allowThreads() throws { try write("max", to: "pids.max") }

    private func write(_ text: String, to name: String) throws {
        try text.write(toFile: "\(folder)/\(name)", atomically: false, encoding: .utf8)
    }

    private func number(_ name: String) throws -> Int {
        let text = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
        return Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
    }

    /// Removes the group, which must have no process left.
    func remove() { rmdir(folder) }
}
