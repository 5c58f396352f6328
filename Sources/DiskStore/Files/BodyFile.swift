import CPinproxyShims
import Glibc

/// The open file of a body.
struct BodyFile: ~Copyable {
    private let raw: CInt

    init(raw: CInt) { self.raw = raw }

    deinit { close(raw) }

    var isRegular: Bool {
        var status = stat()
        return fstat(raw, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Bytes.
    var length: UInt64 {
        var status = stat()
        return fstat(raw, &status) == 0 ? UInt64(status.st_size) : 0
    }

    func write(_ bytes: [UInt8], at offset: UInt64) throws(DiskProblem) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(raw, $0.baseAddress! + done, $0.count - done, off_t(offset) + done)
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw .system("write", errno)
            }
            done += count
        }
    }

    /// Never waits for the disk. Nil: the kernel doesn't have all of it in memory, or can't tell (preadv2(2)).
    func readCached(_ count: Int, at offset: UInt64) -> [UInt8]? {
        var got = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            var place = iovec(iov_base: buffer.baseAddress, iov_len: count)
            got = preadv2(raw, &place, 1, off_t(offset), shim_RWF_NOWAIT)
            done = max(0, got)
        }
        return got == count ? bytes : nil
    }

    /// Fewer bytes if the file ends before.
    func read(_ count: Int, at offset: UInt64) throws(DiskProblem) -> [UInt8] {
        var problem: DiskProblem?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            while done < count {
                let got = pread(raw, buffer.baseAddress! + done, count - done, off_t(offset) + done)
                if got == 0 { return }
                if got > 0 {
                    done += got
                } else if errno != EINTR {
                    problem = .system("read", errno)
                    return
                }
            }
        }
        if let problem { throw problem }
        return bytes
    }
}
