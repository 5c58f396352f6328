import Configuration
import EventLoop
import Glibc

/// Notices that one of some files has been replaced, or written to its end: by inotify, and where a file system
/// tells nothing, whenever ``look()`` is called. Symbolic links are followed. On the main loop.
final class FileWatch: SocketHandler {
    private let loop: EventLoop
    private let changed: () -> Void
    private var stamps: [String: FileStamp] = [:]
    /// Of inotify; -1: none is there.
    private var descriptor: CInt = -1
    private var source: SocketSource?

    /// - Parameter changed: called on the loop, once for any number of files that changed together.
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

    /// Watches the directories of files (a replaced file is another) and of links' targets. Repeating it is harmless.
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

    /// Compares the files with what they were, and tells if one has changed.
    func look() {
        var isChanged = false
        for (path, known) in stamps {
            let stamp = FileStamp(path)
            // One that is being replaced may be away for a moment.
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
