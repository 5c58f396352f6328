internal import CPinproxyShims
internal import Glibc
internal import Synchronization

/// The reports of a ``Door``, taken by another thread.
package final class DoorReports: Sendable {
    private struct State {
        var waiting: [DoorRefusal] = []
        var unlisted = 0
    }

    /// Most reports kept; more are counted.
    private static let limit = 256

    /// Readable while there is something to ``take()``.
    package let descriptor: CInt
    private let state = Mutex(State())

    package init() {
        descriptor = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
    }

    deinit { close(descriptor) }

    func refused(_ refusal: DoorRefusal) {
        state.withLock { state in
            if state.waiting.count < Self.limit { state.waiting.append(refusal) } else { state.unlisted += 1 }
        }
        eventfd_write(descriptor, 1)
    }

    /// The refusals since the last call, and the number of those that weren't kept. Any thread.
    package func take() -> (refusals: [DoorRefusal], unlisted: Int) {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        return state.withLock { state in
            defer { state = State() }
            return (state.waiting, state.unlisted)
        }
    }
}
