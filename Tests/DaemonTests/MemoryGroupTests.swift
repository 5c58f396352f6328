import Foundation
import PinproxyClients
import Testing

@testable import PinproxyDaemon

@Suite struct MemoryGroupTests {
    /// A folder in the form of /sys/fs/cgroup, and the list that names the process's groups.
    private func use(_ list: String, _ files: [String: String]) throws -> MemoryUse? {
        let root = NSTemporaryDirectory() + "pinproxy-groups-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: root) }
        for (name, text) in files.merging(["list": list], uniquingKeysWith: { $1 }) {
            let path = "\(root)/\(name)"
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try text.write(toFile: path, atomically: false, encoding: .utf8)
        }
        return MemoryGroup(of: "\(root)/list", root: root)?.use
    }

    @Test func theSecondVersionIsRead() throws {
        let files = [
            "system.slice/pinproxy.service/memory.max": "67108864\n",
            "system.slice/pinproxy.service/memory.high": "max\n",
            "system.slice/pinproxy.service/memory.current": "50000000\n",
            "system.slice/pinproxy.service/memory.stat": "anon 1\ninactive_file 10000000\n",
            "system.slice/memory.max": "max\n", "system.slice/memory.current": "900000000\n",
        ]
        let list = "0::/system.slice/pinproxy.service\n"
        #expect(try use(list, files) == MemoryUse(used: 40_000_000, limit: 67_108_864))
        // The lower of both limits, and the tightest of all groups.
        let lower = files.merging(["system.slice/pinproxy.service/memory.high": "60000000\n"]) { $1 }
        #expect(try use(list, lower)?.limit == 60_000_000)
        let slice = files.merging(["system.slice/memory.max": "1000000000\n"]) { $1 }
        #expect(try use(list, slice) == MemoryUse(used: 900_000_000, limit: 1_000_000_000))
    }

    @Test func theFirstVersionIsRead() throws {
        let files = [
            "memory/a/memory.limit_in_bytes": "1000\n", "memory/a/memory.usage_in_bytes": "900\n",
            "memory/a/memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
            "memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/memory.usage_in_bytes": "1\n",
        ]
        #expect(try use("4:memory:/a\n0::/b\n", files) == MemoryUse(used: 600, limit: 1000))
        // In a container that sees its own group as the root.
        let root = ["memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "900\n"]
        #expect(try use("4:memory:/docker/123\n", root) == MemoryUse(used: 900, limit: 1000))
    }

    @Test(arguments: ["", "0::\n", "garbage\n", "0::/../../x\n", "4:cpu:/a\n"])
    func whatSaysNothingLimitsNothing(_ list: String) throws {
        #expect(try use(list, ["x/memory.max": "max\n", "x/memory.current": "1\n"]) == nil)
    }

    @Test(arguments: ["", "-1\n", "max\n", "99999999999999999999999\n"])
    func aLimitThatIsNoneLimitsNothing(_ limit: String) throws {
        #expect(try use("0::/x\n", ["x/memory.max": limit, "x/memory.current": "1\n"]) == nil)
    }
}
