internal import Glibc

/// An open file descriptor that has one owner: closed when the value goes, unless it is released.
package struct Descriptor: ~Copyable {
    package let raw: CInt

    /// Takes over `raw`, which must be open and owned by nobody else.
    package init(owning raw: CInt) {
        self.raw = raw
    }

    /// Gives the descriptor away: whoever receives it has to close it.
    package consuming func release() -> CInt {
        let raw = self.raw
        discard self
        return raw
    }

    deinit {
        // Not repeated on EINTR: on Linux the descriptor is gone by then, and its number may be somebody else's.
        _ = Glibc.close(raw)
    }
}

extension Descriptor {
    /// Writes to an open descriptor; see write(2) for the result and `errno`.
    package static func write(_ bytes: ArraySlice<UInt8>, to raw: CInt) -> Int {
        bytes.withUnsafeBytes { Glibc.write(raw, $0.baseAddress, $0.count) }
    }

    /// How many descriptors this process may have open at one time (the soft limit RLIMIT_NOFILE).
    package static var limit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }

    /// Raises it to the hard limit. The lower one is for programs that use select(2), which this isn't.
    package static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max
        else { return }
        limit.rlim_cur = limit.rlim_max
        // A failure leaves what was there, which ``limit`` tells.
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
