internal import Glibc

/// An instant of `CLOCK_MONOTONIC` in nanoseconds: for deadlines and durations, never dates.
package struct MonotonicTime: Comparable, Hashable, Sendable {
    package var nanoseconds: UInt64

    @inlinable package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// Reads the clock (about 20 ns). `EventLoop.now` is cheaper when used twice.
    package static func now() -> MonotonicTime {
        var time = timespec()
        // Can't fail on Linux.
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(
            nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// A later instant, saturating.
    @inlinable package func advanced(byNanoseconds nanoseconds: UInt64) -> MonotonicTime {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(nanoseconds)
        return MonotonicTime(nanoseconds: overflow ? .max : sum)
    }

    @inlinable package static func < (a: MonotonicTime, b: MonotonicTime) -> Bool {
        a.nanoseconds < b.nanoseconds
    }

    /// Nanoseconds from `earlier` to `later`; 0 in reverse.
    @inlinable package static func - (later: MonotonicTime, earlier: MonotonicTime) -> UInt64 {
        later.nanoseconds > earlier.nanoseconds ? later.nanoseconds &- earlier.nanoseconds : 0
    }
}
