internal import CPinproxyShims
internal import Synchronization

/// Returns free memory to the system, off the workers' threads, once for concurrent requests: the walk locks each heap
/// for milliseconds after a large peak.
package final class FreeMemory: Sendable {
    private let isWanted = Atomic(false)
    private let run: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let give: @Sendable () -> Void

    /// - Parameter run: runs work elsewhere and later, serially.
    package init(
        run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        give: @escaping @Sendable () -> Void = { malloc_trim(0) }
    ) {
        self.run = run
        self.give = give
    }

    /// Runs on a background thread.
    package convenience init() throws(SystemError) {
        let queue = try WorkQueue("free memory", isBackground: true)
        self.init(run: { queue.async($0) })
    }

    /// Releases memory and code that only the start needs; code returns from the page cache on demand.
    package func giveBackAfterStart() {
        run { [give] in
            give()
            shim_unmap_programs()
        }
    }

    package func giveBack() {
        guard !isWanted.exchange(true, ordering: .relaxed) else { return }
        run { [self] in
            // This walk may miss later frees, which deserve another.
            isWanted.store(false, ordering: .relaxed)
            give()
        }
    }
}
