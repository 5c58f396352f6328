internal import CPinproxyShims
internal import Glibc

// One idea with ProcessTable.swift: each uses the other.

package enum Lineage {
    /// Keeps background processes in the lineage (prctl(2), PR_SET_CHILD_SUBREAPER).
    package static func adoptOrphans() { shim_adopt_orphans() }

    /// The sockets of this process or its descendants, except other users' and privileged processes.
    package static func sockets(among inodes: Set<UInt64>) -> Set<UInt64> {
        let own = getpid()
        var found: Set<UInt64> = []
        // The kernel may skip one while others end.
        for _ in 0..<2 where found.count < inodes.count {
            // Without CONFIG_PROC_CHILDREN all processes are examined.
            let holders = ProcessTable.holders(
                of: inodes.subtracting(found), among: descendants(of: own).map { [own] + $0 }, limit: .max
            )
            .processes
            // A number may have been reused.
            found.formUnion(holders.filter { $0.value.contains { descends($0.id, from: own) } }.keys)
        }
        return found
    }

    /// Nil: the kernel doesn't provide it.
    static func descendants(of ancestor: Int32) -> [Int32]? {
        guard let children = children(of: ancestor) else { return nil }
        var family = children
        var seen = Set(family)
        var next = 0
        while next < family.count {
            // Data read while processes come and go may be circular.
            for child in self.children(of: family[next]) ?? [] where seen.insert(child).inserted {
                family.append(child)
            }
            next += 1
        }
        return family
    }

    private static func children(of id: Int32) -> [Int32]? {
        var children: [Int32]?
        // Children belong to threads.
        for thread in ProcFile.numbers(in: "/proc/\(id)/task") {
            guard let list = ProcFile.read("/proc/\(id)/task/\(thread)/children") else { continue }
            children = (children ?? []) + list.split(separator: " ").compactMap { Int32($0) }
        }
        return children
    }

    private static func descends(_ id: Int32, from ancestor: Int32) -> Bool {
        var id = id
        for _ in 0..<1000 {
            // The ancestor may be the first process, as a container's is.
            if id == ancestor { return true }
            guard id > 1, let birth = ProcFile.read("/proc/\(id)/stat").flatMap(birth) else { return false }
            id = birth.parent
        }
        return false
    }

    struct Birth: Equatable {
        let parent: Int32
        /// In clock ticks since boot.
        let started: UInt64
    }

    /// Fields 4 and 22 of `/proc/PID/stat`. The second is the program's name in parentheses, which may hold anything.
    static func birth(_ stat: String) -> Birth? {
        guard let end = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        guard fields.count > 19, let parent = Int32(fields[1]), let started = UInt64(fields[19]) else { return nil }
        return Birth(parent: parent, started: started)
    }
}
