internal import CPinproxyShims
internal import Glibc

/// The processors that this process may run on (taskset(1), `CPUAffinity=`, a container's cpuset).
package enum Processors {
    /// At least 1.
    package static var available: Int {
        // Bits for 8,192 processors, the most that Linux can be built for.
        var mask = [UInt64](repeating: 0, count: 128)
        guard sched_getaffinity(0, mask.count * MemoryLayout<UInt64>.size, &mask) == 0 else {
            // A filter of system calls may forbid the call.
            return max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        }
        return max(1, mask.reduce(0) { $0 + $1.nonzeroBitCount })
    }
}
