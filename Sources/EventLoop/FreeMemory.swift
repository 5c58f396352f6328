internal import CShims
internal import Synchronization

/// Gives free memory back to the system, off the workers' threads, and once for requests that come together.
///
/// Every heap of the process is locked while it is walked, each for some milliseconds after a large peak: not to be
/// asked for on the way of a request.
package final class FreeMemory: Sendable {
    private let isWanted = Atomic(false)
    private let run: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let give: @Sendable () -> Void

    /// - Parameters:
    ///   - run: runs work elsewhere and later, one after the other.
    ///   - give: walks the heaps.
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

    /// What only the start of a program needs: free memory, and the code that ran. The system maps sixteen pages around
    /// each that is touched, and so most of the program; what is needed again comes back from its cache.
    package func giveBackAfterStart() {
        run { [give] in
            give()
            shim_unmap_programs()
        }
    }

    package func giveBack() {
        guard !isWanted.exchange(true, ordering: .relaxed) else { return }
        run { [self] in
            // What is freed from here on may be missed by this walk: it is worth another.
            isWanted.store(false, ordering: .relaxed)
            give()
        }
    }
}
