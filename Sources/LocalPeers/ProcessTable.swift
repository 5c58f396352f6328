internal import Glibc

package struct SocketHolders: Sendable {
    /// Keyed by socket number; the process that started first comes first.
    package var processes: [UInt64: [LocalProcess]] = [:]
    /// Users with more than ``ProcessTable/descriptorLimit`` descriptors, which were not all examined.
    package var overlooked: Set<UInt32> = []

    package init() {}
}

/// The processes of this machine (procfs(5)). To find a socket's holder takes milliseconds, through all descriptors: so
/// a search serves many sockets, and never blocks a client.
package enum ProcessTable {
    /// Most examined descriptors of one user, except root: no user can make a search take seconds.
    package static let descriptorLimit = 1 << 16

    /// The holders of sockets. Process numbers may be reused meanwhile: so files are opened from the process's own
    /// directory, and the socket is checked again afterwards.
    /// - Parameters:
    ///   - inodes: of the sockets.
    ///   - candidates: processes; nil: all.
    ///   - limit: descriptors of one user.
    package static func holders(
        of inodes: Set<UInt64>, among candidates: [Int32]? = nil, limit: Int = descriptorLimit
    ) -> SocketHolders {
        var found = SocketHolders()
        var allowance = DescriptorAllowance(limit: limit)
        for id in candidates ?? ProcFile.numbers(in: "/proc") {
            for (inode, process) in sockets(of: id, among: inodes, &allowance) {
                found.processes[inode, default: []].append(process)
            }
        }
        found.processes = found.processes.mapValues { $0.sorted { ($0.started, $0.id) < ($1.started, $1.id) } }
        found.overlooked = allowance.overdrawn
        return found
    }

    private static func sockets(
        of id: Int32, among inodes: Set<UInt64>, _ allowance: inout DescriptorAllowance
    ) -> [(UInt64, LocalProcess)] {
        let process = open("/proc/\(id)", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard process >= 0 else { return [] }
        defer { close(process) }
        let descriptors = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptors >= 0 else { return [] }
        guard let directory = fdopendir(descriptors) else {
            close(descriptors)
            return []
        }
        defer { closedir(directory) }
        // A socket may have several descriptors.
        var held: [UInt64: String] = [:]
        allowance.begin(process)
        while let entry = readdir(directory) {
            guard allowance.take() else { break }
            let name = entry.name
            guard let inode = socket(name, in: descriptors), inodes.contains(inode) else { continue }
            held[inode] = name
        }
        guard !held.isEmpty, let description = describe(id, process) else { return [] }
        // After execve(2) it may no longer hold it.
        return held.filter { socket($0.value, in: descriptors) == $0.key }.map { ($0.key, description) }
    }

    /// The socket's number; nil: no socket.
    private static func socket(_ name: String, in descriptors: CInt) -> UInt64? {
        guard let link = ProcFile.link(name, in: descriptors), link.hasPrefix("socket:["), link.hasSuffix("]") else {
            return nil
        }
        return UInt64(link.dropFirst(8).dropLast())
    }

    private static func describe(_ id: Int32, _ process: CInt) -> LocalProcess? {
        guard let started = ProcFile.read("stat", in: process).flatMap(Lineage.birth)?.started else { return nil }
        return LocalProcess(
            id: id, started: started, executable: executable(process),
            unit: ProcFile.read("cgroup", in: process).flatMap(ControlGroup.unit))
    }

    /// The program's path, if it is the same file here: in a mount namespace (unshare(1)) it may be another.
    private static func executable(_ process: CInt) -> String? {
        var (own, named) = (stat(), stat())
        guard let path = ProcFile.link("exe", in: process), path.hasPrefix("/"), fstatat(process, "exe", &own, 0) == 0,
            stat(path, &named) == 0, own.st_dev == named.st_dev, own.st_ino == named.st_ino
        else { return nil }
        return path
    }
}
