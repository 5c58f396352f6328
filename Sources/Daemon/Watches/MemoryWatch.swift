import Logging
import PinproxyClients
import PinproxyEventLoop
import PinproxySecurity
import PinproxyTLS

/// Sheds load before the control group's memory is used up and the kernel kills the process. On the acceptor's loop,
/// where no reload or busy worker delays it. No request measures anything.
final class MemoryWatch {
    /// The fastest expected growth. At that rate, the memory left lasts until the next measurement.
    private static let bytesPerSecond = 256 << 20
    private static let milliseconds = 20...1000
    private static let clientsBetween = 32

    private let loop: EventLoop
    private let group: MemoryGroup
    private let pressure: MemoryPressure
    private let shed: (@escaping @Sendable (Int) -> Void) -> Void
    private let ended: () -> Void
    private let shortage: Shortage
    private var clients = 0
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.measure() }

    /// - Parameters:
    ///   - shed: closes idle connections, and reports their number on any thread.
    ///   - ended: memory is no longer short.
    init(
        loop: EventLoop, group: MemoryGroup, pressure: MemoryPressure, logger: Logger,
        shed: @escaping (@escaping @Sendable (Int) -> Void) -> Void, ended: @escaping () -> Void
    ) {
        self.loop = loop
        self.group = group
        self.pressure = pressure
        self.shed = shed
        self.ended = ended
        shortage = Shortage("memory.limit", .loadShed, loop: loop, logger: logger)
    }

    func clientAccepted() {
        clients += 1
        if clients >= Self.clientsBetween { measure() }
    }

    private static func pause(after use: MemoryUse?) -> UInt64 {
        let left = min(use.map { $0.limit - $0.used } ?? .max, bytesPerSecond)
        let wanted = left / (bytesPerSecond / 1000)
        return UInt64(min(max(wanted, milliseconds.lowerBound), milliseconds.upperBound)) * 1_000_000
    }

    func measure() {
        clients = 0
        let (level, isAnother) = pressure.measure { group.use }
        let use = pressure.use
        deadline.set(afterNanoseconds: Self.pause(after: use))
        guard level > .none, let use else {
            if isAnother { ended() }
            return
        }
        shortage.strike(.warning, ["used": .stringConvertible(use.used), "limit": .stringConvertible(use.limit)])
        let watch = LoopBound(self, on: loop)
        shed { count in watch.post { $0.shortage.met(count) } }
    }
}

/// Memory of the process's control group (cgroups(7)): `MemoryMax=` of a unit, a container's limit.
struct MemoryGroup: Sendable {
    /// Files of either version of control groups.
    private struct Names {
        let limits: [String]
        let used: String
        let inactive: Substring

        static let first = Names(
            limits: ["memory.limit_in_bytes"], used: "memory.usage_in_bytes", inactive: "total_inactive_file")
        static let second = Names(
            limits: ["memory.max", "memory.high"], used: "memory.current", inactive: "inactive_file")
    }

    /// The value of cgroups version 1 without a limit.
    private static let most = 1 << 60

    private let folders: [String]
    private let names: Names

    /// Nil: the kernel has no figures.
    /// - Parameter root: where control groups are mounted.
    init?(of list: String = "/proc/self/cgroup", root: String = "/sys/fs/cgroup") {
        guard let text = Self.text(list) else { return nil }
        let lines = text.split(separator: "\n").map {
            $0.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        }
        let first = lines.first { $0.count == 3 && $0[1].split(separator: ",").contains("memory") }
        let second = lines.first { $0.count == 3 && $0[0] == "0" && $0[1].isEmpty }
        guard let path = (first ?? second)?[2] else { return nil }
        names = first == nil ? .second : .first
        var folder = first == nil ? root : root + "/memory"
        var folders = [folder]
        // In a container the path may not exist: then the root is the container's.
        for part in path.split(separator: "/") where part != ".." {
            folder += "/\(part)"
            folders.append(folder)
        }
        let (all, used) = (folders, names.used)
        self.folders = all.filter { Self.text("\($0)/\(used)") != nil }
        guard !self.folders.isEmpty else { return nil }
    }

    /// The memory use of the group nearest to its limit; nil: no limit.
    var use: MemoryUse? {
        folders.compactMap(use).max { $0.share < $1.share }
    }

    private func use(in folder: String) -> MemoryUse? {
        let limits = names.limits.compactMap { Self.number("\(folder)/\($0)") }
        guard let limit = limits.min(), limit < Self.most, let used = Self.number("\(folder)/\(names.used)") else {
            return nil
        }
        return MemoryUse(used: max(0, used - inactive(in: folder)), limit: limit)
    }

    private func inactive(in folder: String) -> Int {
        for line in Self.text("\(folder)/memory.stat")?.split(separator: "\n") ?? [] {
            let words = line.split(separator: " ")
            if words.count == 2, words[0] == names.inactive { return Int(words[1]).map { max(0, $0) } ?? 0 }
        }
        return 0
    }

    /// Nil for `max` too.
    private static func number(_ path: String) -> Int? {
        text(path)?.split(separator: "\n").first.flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }

    private static func text(_ path: String) -> String? {
        (try? SmallFile.read(path, limit: 1 << 20)).map { String(decoding: $0.bytes, as: UTF8.self) }
    }
}
