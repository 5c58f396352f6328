import Configuration
import EventLoop
import Glibc
import TLS

/// Notices that a file of `crl_files` has been replaced, or written to its end: by inotify, and where a file system
/// tells nothing, whenever ``look()`` is called. On the main loop.
final class RevocationListWatch: SocketHandler {
    /// What tells one version of a file from another.
    private struct Stamp: Equatable {
        let device: UInt64
        let file: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int

        /// Nil if there is no such file: one that is being replaced may be away for a moment.
        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            (device, file, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
            (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        }
    }

    private let loop: EventLoop
    private let changed: () -> Void
    private var stamps: [String: Stamp] = [:]
    /// Of inotify; -1: none is there.
    private var descriptor: CInt = -1
    private var source: SocketSource?

    /// - Parameter changed: called on the loop, once for any number of files that changed together.
    init(loop: EventLoop, changed: @escaping () -> Void) {
        self.loop = loop
        self.changed = changed
    }

    deinit { stop() }

    /// Watches the lists of a configuration that was just read, in place of any before.
    func watch(_ snapshot: Snapshot) {
        stop()
        let paths = Set(snapshot.revocationLists.flatMap(\.lists.paths))
        stamps = [:]
        for path in paths { stamps[path] = Stamp(path) }
        guard !paths.isEmpty else { return }
        descriptor = inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC))
        guard descriptor >= 0 else { return }
        // The directories: a file that is replaced is another file.
        for directory in Set(paths.map(Self.directory)) {
            inotify_add_watch(descriptor, directory, UInt32(IN_CLOSE_WRITE) | UInt32(IN_MOVED_TO))
        }
        source = SocketSource(loop: loop, descriptor: descriptor, handler: self)
        source?.wantsRead = true
    }

    func stop() {
        source?.invalidate()
        source = nil
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    /// Compares the files with what they were, and tells if one has changed.
    func look() {
        var isChanged = false
        for (path, known) in stamps {
            guard let stamp = Stamp(path), stamp != known else { continue }
            stamps[path] = stamp
            isChanged = true
        }
        if isChanged { changed() }
    }

    func socketReady(_ readiness: Readiness) {
        // Which files it was is told by their stamps.
        var events = [UInt8](repeating: 0, count: 16 << 10)
        while read(descriptor, &events, events.count) > 0 {}
        look()
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
