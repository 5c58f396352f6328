import Glibc

/// A file read into memory whole, for the kinds that this room reads itself.
enum WholeFile {
    /// The file's bytes; one that is longer than the limit, far above any bundle of anchors, is EFBIG.
    static func read(_ path: String, limit: Int = 64 << 20) throws(FileFailure) -> [UInt8] {
        guard let file = fopen(path, "re") else { throw FileFailure(code: errno) }
        defer { fclose(file) }
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
}

/// An errno.
struct FileFailure: Error {
    let code: CInt
}
