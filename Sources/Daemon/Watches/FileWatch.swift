import Glibc
import PinproxyConfiguration
import PinproxyEventLoop

/// Notices replaced or rewritten files, by inotify or ``look()``. Follows symbolic links. On the main loop.
final class FileWatch: SocketHandler {
    private let loop: EventLoop
    private let changed: () -> Void
    private var stamps: [String: FileStamp] = [:]
    private var descriptor: CInt = -1
    private var source: SocketSource?

    /// - Parameter changed: called on the loop, once for files that changed together.
    init(loop: EventLoop, changed: @escaping () -> Void) {
        self.loop = loop
        self.changed = changed
    }

    deinit { stop() }

    /// Watches files that were just read, in place of any before.
    func watch(_ paths: Set<String>) {
        stop()
        stamps = [:]
        for path in paths { stamps[path] = FileStamp(path) }
        guard !paths.isEmpty else { return }
        descriptor = inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC))
        guard descriptor >= 0 else { return }
        watchDirectories()
        source = SocketSource(loop: loop, descriptor: descriptor, handler: self)
        source?.wantsRead = true
    }

    /// Watches directories of files (a replaced file is a new one) and of link targets. May be repeated.
    private func watchDirectories() {
        for path in stamps.keys.flatMap(Self.links) {
            inotify_add_watch(descriptor, Self.directory(of: path), UInt32(IN_CLOSE_WRITE) | UInt32(IN_MOVED_TO))
        }
    }

    /// A path and, if it is a symbolic link, its target, and so on.
    private static func links(from path: String) -> [String] {
        var (found, path) = ([path], path)
        while found.count <= linkLimit {
            var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(path, &bytes, bytes.count)
            guard count > 0 else { break }
            let target = String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            path = target.hasPrefix("/") ? target : "\(directory(of: path))/\(target)"
            found.append(path)
        }
        return found
    }

    private static let linkLimit = 40

    func stop() {
        source?.invalidate()
        source = nil
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    /// Compares the files with their last stamps.
    func look() {
        var isChanged = false
        for (path, known) in stamps {
            let stamp = FileStamp(path)
            // It may be missing while it is replaced.
            guard stamp.exists, stamp != known else { continue }
            stamps[path] = stamp
            isChanged = true
        }
        if isChanged { changed() }
    }

    func socketReady(_ readiness: Readiness) {
        // Their stamps say which files changed.
        var events = [UInt8](repeating: 0, count: 16 << 10)
        while read(descriptor, &events, events.count) > 0 {}
        // A link may have another target now.
        watchDirectories()
        look()
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
