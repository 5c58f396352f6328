internal import Glibc

/// Files of settings and certificates, as a whole.
enum SmallFile {
    private static let limit = 64 << 10

    /// Makes a file that others may read.
    static func write(_ text: String, to path: String) throws(MountError) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw MountError(at: path) }
        defer { close(file) }
        guard Glibc.write(file, text, text.utf8.count) == text.utf8.count else { throw MountError(at: path) }
    }

    /// Nil: it can't be read, or has 64 KiB and more.
    static func read(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = Glibc.read(file, &bytes, bytes.count)
        return count >= 0 && count < limit ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
