internal import Glibc

/// Core files (core(5)). One of the proxy would hold the authority's key, passwords and what clients send.
enum CoreFiles {
    /// Keeps a crash of this process, and of its children, from leaving one. The hard limit stays as it is, so that
    /// `prlimit --core=unlimited --pid PID` allows one.
    static func forbid() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0, limit.rlim_cur > 0 else { return }
        limit.rlim_cur = 0
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }
}
