internal import Glibc

/// An owned file descriptor: closed with the value, unless released.
package struct Descriptor: ~Copyable {
    package let raw: CInt

    /// Takes over `raw`, which must be open and unowned.
    package init(owning raw: CInt) {
        self.raw = raw
    }

    /// Gives the descriptor to the caller, who closes it.
    package consuming func release() -> CInt {
        let raw = self.raw
        discard self
        return raw
    }

    deinit {
        // Not repeated on EINTR: Linux has closed it by then, and its number may be in use again.
        _ = Glibc.close(raw)
    }
}

extension Descriptor {
    /// Writes to an open descriptor; see write(2) for the result and `errno`.
    package static func write(_ bytes: ArraySlice<UInt8>, to raw: CInt) -> Int {
        bytes.withUnsafeBytes { Glibc.write(raw, $0.baseAddress, $0.count) }
    }

    /// How many descriptors this process may open (the soft limit RLIMIT_NOFILE).
    package static var limit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }

    /// Raises it to the hard limit; the soft one is for select(2).
    package static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max
        else { return }
        limit.rlim_cur = limit.rlim_max
        // On failure ``limit`` keeps its value.
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
