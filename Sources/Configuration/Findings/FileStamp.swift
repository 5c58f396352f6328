internal import Glibc

/// The identity of a file when it was read. It is no longer current once the file is written or replaced.
package struct FileStamp: Sendable, Equatable, Codable {
    package let path: String
    private let edition: Edition?

    private struct Edition: Equatable, Codable {
        let device: UInt64
        let inode: UInt64
        let size: Int
        let seconds: Int
        let nanoseconds: Int

        init(_ status: stat) {
            (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), status.st_size)
            (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        }
    }

    package init(_ path: String) {
        self.path = Self.absolute(path)
        var status = stat()
        edition = stat(path, &status) == 0 ? Edition(status) : nil
    }

    package var exists: Bool { edition != nil }

    /// A line that differs between files, and between editions of one; nil: there is no file.
    package var text: String? {
        edition.map { "\($0.device):\($0.inode):\($0.size):\($0.seconds).\($0.nanoseconds) \(path)" }
    }

    package var isCurrent: Bool { edition != nil && FileStamp(path) == self }

    /// Below the working directory, if it is relative.
    package static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return "\(String(cString: current))/\(path)"
    }
}
