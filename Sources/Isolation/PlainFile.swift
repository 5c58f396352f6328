internal import Glibc

/// Whole files of bounded size.
enum PlainFile {
    private static let limit = 64 << 20

    static func read(_ path: String, limit: Int = limit) throws(MountError) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw MountError(at: path) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw MountError(at: path) }
        guard status.st_size <= limit else {
            errno = EFBIG
            throw MountError(at: path)
        }
        // One byte more, which a file that grows has.
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size) + 1)
        let count = Glibc.read(file, &bytes, bytes.count)
        guard count >= 0 else { throw MountError(at: path) }
        guard count < bytes.count else {
            errno = EAGAIN
            throw MountError(at: path)
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// Makes a file that others may read.
    static func write(_ bytes: [UInt8], to path: String) throws(MountError) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw MountError(at: path) }
        defer { close(file) }
        let count = Glibc.write(file, bytes, bytes.count)
        // A part is written where there is no room for more.
        if count >= 0, count < bytes.count { errno = ENOSPC }
        guard count == bytes.count else { throw MountError(at: path) }
    }
}
