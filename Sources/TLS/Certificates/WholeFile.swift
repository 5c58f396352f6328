import Glibc

/// A file read into memory whole, for the kinds that this room reads itself.
enum WholeFile {
    /// The file's bytes; one that is longer than the limit, far above any bundle of anchors, is EFBIG.
    static func read(_ path: String, limit: Int = 64 << 20) throws(FileFailure) -> [UInt8] {
        // Opened so that a pipe which nobody writes to isn't waited for.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure(code: errno) }
        guard let file = fdopen(descriptor, "r") else {
            defer { close(descriptor) }
            throw FileFailure(code: errno)
        }
        defer { fclose(file) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw FileFailure(code: errno) }
        try check(status, limit: limit)
        var bytes: [UInt8] = []
        while true {
            let part = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = fread(buffer.baseAddress, 1, buffer.count, file)
            }
            if part.isEmpty { break }
            bytes += part
            guard bytes.count <= limit else { throw FileFailure(code: EFBIG) }
        }
        guard ferror(file) == 0 else { throw FileFailure(code: errno) }
        return bytes
    }

    /// The same failures for a file that OpenSSL reads by its path, without a limit of its own.
    static func check(_ path: String, limit: Int) throws(FileFailure) {
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else { throw FileFailure(code: errno) }
        try check(status, limit: limit)
    }

    private static func check(_ status: stat, limit: Int) throws(FileFailure) {
        switch status.st_mode & S_IFMT {
        case S_IFREG: guard status.st_size <= limit else { throw FileFailure(code: EFBIG) }
        case S_IFDIR: throw FileFailure(code: EISDIR)
        default: throw FileFailure(code: FileFailure.notAFile)
        }
    }
}

struct FileFailure: Error, CustomStringConvertible {
    /// A pipe, a socket or a device, which may never end, or never begin.
    static let notAFile = ESPIPE

    let code: CInt

    var description: String { code == Self.notAFile ? "not a regular file" : String(cString: strerror(code)) }
}
