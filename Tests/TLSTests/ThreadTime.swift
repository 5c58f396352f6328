import Glibc

/// The processor time of the calling thread: what a check costs, whatever else the machine does.
enum ThreadTime {
    static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// The milliseconds that a piece of work takes.
    static func of<Value>(_ work: () throws -> Value) rethrows -> (milliseconds: Double, value: Value) {
        let start = nanoseconds()
        let value = try work()
        return (Double(nanoseconds() - start) / 1_000_000, value)
    }
}
