internal import Glibc

/// A regular file that is open for reading, and must not change.
final class OpenedFile {
    let length: Int
    private let path: String
    private let descriptor: CInt
    private let modified: timespec

    init(path: String) throws(RequestSerializationError) {
        // A named pipe without a writer would block.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw Self.unusable(path, Self.message(errno)) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Self.unusable(path, "it is not a regular file")
        }
        self.path = path
        self.descriptor = descriptor
        length = Int(status.st_size)
        modified = status.st_mtim
    }

    deinit { close(descriptor) }

    func read(into buffer: UnsafeMutableRawBufferPointer, from start: Int) throws(RequestSerializationError) {
        var filled = 0
        while filled < buffer.count {
            let count = pread(descriptor, buffer.baseAddress! + filled, buffer.count - filled, start + filled)
            if count > 0 {
                filled += count
            } else if count == 0 {
                throw changed("it ended after \(start + filled) of \(length) bytes")
            } else if errno != EINTR {
                throw changed(Self.message(errno))
            }
        }
    }

    /// For when all of it is read.
    func checkIsUnchanged() throws(RequestSerializationError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw changed(Self.message(errno)) }
        guard status.st_size == length else { throw changed("it had \(length) bytes, and now \(status.st_size)") }
        guard status.st_mtim.tv_sec == modified.tv_sec, status.st_mtim.tv_nsec == modified.tv_nsec else {
            throw changed("it was written to")
        }
        // A file of /proc says that it has no length.
        var next: UInt8 = 0
        guard pread(descriptor, &next, 1, length) <= 0 else {
            throw changed("it is longer than the \(length) bytes that it had")
        }
    }

    func unusable(_ explanation: String) -> RequestSerializationError { Self.unusable(path, explanation) }

    private static func unusable(_ path: String, _ explanation: String) -> RequestSerializationError {
        RequestSerializationError(.unusableFile(path: path, explanation: explanation))
    }

    private func changed(_ explanation: String) -> RequestSerializationError {
        RequestSerializationError(.changedFile(path: path, explanation: explanation))
    }

    private static func message(_ code: CInt) -> String { String(cString: strerror(code)) }
}
