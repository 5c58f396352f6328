internal import Foundation

/// The proxy that runs with a state directory.
///
/// Its number stands in a file, and a number can be wrong: of a process in another container, or of somebody else by
/// now. A signal would be that process's end. So the process is known by the lock's file, which it has open.
struct RunningProxy {
    let process: pid_t
    private let lock: String

    /// nil if no proxy runs with that directory.
    static func find(_ files: StateFiles) throws -> RunningProxy? {
        // A proxy that has locked the file writes its number a moment later.
        let deadline = ContinuousClock.now + .seconds(1)
        while true {
            guard let process = ProcessLock.holder(files.processID) else { return nil }
            let proxy = RunningProxy(process: process, lock: files.processID)
            if try proxy.holdsLock() { return proxy }
            guard ContinuousClock.now < deadline else {
                throw CommandFailure(
                    "\(files.processID) names process \(process), which is not the proxy that has it locked: the proxy "
                        + "runs in another container, or the file was changed; nothing was asked of it")
            }
            usleep(10_000)
        }
    }

    /// Whether it has not ended.
    var isRunning: Bool { ProcessLock.holder(lock) == process }

    func send(_ signal: Int32) throws {
        guard kill(process, signal) == 0 else {
            throw CommandFailure("process \(process) can't be signalled: \(systemReason())")
        }
    }

    /// What it says of its reloads; nil if it says nothing, or is about to.
    func reloadStatus() -> ReloadStatus? {
        guard let names = try? descriptors() else { return nil }
        for name in names where readLink(name)?.hasPrefix("/memfd:\(ReloadStatus.fileName)") == true {
            guard let bytes = FileManager.default.contents(atPath: name) else { return nil }
            return ReloadStatus(bytes).flatMap { $0.process == process ? $0 : nil }
        }
        return nil
    }

    private func holdsLock() throws -> Bool {
        var wanted = stat()
        guard stat(lock, &wanted) == 0 else { return false }
        return try descriptors().contains { name in
            var status = stat()
            return stat(name, &status) == 0 && status.st_dev == wanted.st_dev && status.st_ino == wanted.st_ino
        }
    }

    /// The paths of the process's open files.
    private func descriptors() throws -> [String] {
        let directory = "/proc/\(process)/fd"
        guard let stream = opendir(directory) else {
            if errno == ENOENT { return [] }
            throw CommandFailure(
                "process \(process) can't be looked at: \(systemReason()); run this as the user that runs the proxy, "
                    + "or as root")
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.first?.isNumber == true { names.append("\(directory)/\(name)") }
        }
        return names
    }

    private func readLink(_ path: String) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: path)
    }
}
