internal import Glibc

package struct SocketHolders: Sendable {
    /// Keyed by socket number; the process that started first comes first.
    package var processes: [UInt64: [LocalProcess]] = [:]
    /// Users with more than ``ProcessTable/descriptorLimit`` descriptors: not all of their processes were looked into.
    package var overlooked: Set<UInt32> = []

    package init() {}
}

/// The processes of this machine, as `/proc` shows them (procfs(5)).
///
/// To find who holds a socket is to look at the descriptors of every process: milliseconds, so that it is done for many sockets
/// at a time, and never where a client is served.
package enum ProcessTable {
    /// Descriptors of one user's processes that are looked at, root's excepted: nobody can make a look take seconds.
    package static let descriptorLimit = 1 << 16

    /// The processes that hold each of these sockets.
    ///
    /// A number of a process may be used again while this looks. So every file is opened from the process's own directory,
    /// which stays that process's, and the socket is looked for again after the rest was read.
    /// - Parameters:
    ///   - inodes: of the sockets.
    ///   - candidates: where to look; nil: everywhere.
    ///   - limit: of descriptors of one user's.
    package static func holders(
        of inodes: Set<UInt64>, among candidates: [Int32]? = nil, limit: Int = descriptorLimit
    ) -> SocketHolders {
        var found = SocketHolders()
        var allowance = DescriptorAllowance(limit: limit)
        for id in candidates ?? ProcFile.numbers(in: "/proc") {
            for (inode, process) in sockets(of: id, among: inodes, &allowance) { found.processes[inode, default: []].append(process) }
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
        // Several descriptors may be of one socket.
        var held: [UInt64: String] = [:]
        allowance.begin(process)
        while let entry = readdir(directory) {
            guard allowance.take() else { break }
            let name = entry.name
            guard let inode = socket(name, in: descriptors), inodes.contains(inode) else { continue }
            held[inode] = name
        }
        guard !held.isEmpty, let description = describe(id, process) else { return [] }
        // A process that has become another program meanwhile (execve(2)) may hold it no longer.
        return held.filter { socket($0.value, in: descriptors) == $0.key }.map { ($0.key, description) }
    }

    /// The number of the socket behind a descriptor; nil if it isn't one.
    private static func socket(_ name: String, in descriptors: CInt) -> UInt64? {
        guard let link = ProcFile.link(name, in: descriptors), link.hasPrefix("socket:["), link.hasSuffix("]") else { return nil }
        return UInt64(link.dropFirst(8).dropLast())
    }

    private static func describe(_ id: Int32, _ process: CInt) -> LocalProcess? {
        guard let started = ProcFile.read("stat", in: process).flatMap(Lineage.birth)?.started else { return nil }
        return LocalProcess(
            id: id, started: started, executable: executable(process),
            unit: ProcFile.read("cgroup", in: process).flatMap(ControlGroup.unit))
    }

    /// The path of the program's file, if that is the same file here. Anybody can make a file system of his own (unshare(1))
    /// in which /usr/bin/curl is another program.
    private static func executable(_ process: CInt) -> String? {
        var (own, named) = (stat(), stat())
        guard let path = ProcFile.link("exe", in: process), path.hasPrefix("/"), fstatat(process, "exe", &own, 0) == 0,
            stat(path, &named) == 0, own.st_dev == named.st_dev, own.st_ino == named.st_ino
        else { return nil }
        return path
    }
}
