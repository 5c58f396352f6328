internal import CPinproxyShims
internal import Glibc
internal import Synchronization

// One idea with EventLoop.swift: the part of a loop that other threads touch.

/// A loop's queue of closures from any thread. An eventfd wakes a sleeping loop, once for all posts until it looks.
final class Inbox: Sendable {
    typealias Post = @Sendable (EventLoop) -> Void

    private struct Contents {
        var posts: [Post] = []
        var isOpen = true
    }

    /// Whether a post has to wake the loop, and the loop to look for posts.
    private enum Wakefulness: UInt8, AtomicRepresentable {
        /// The loop runs, and looks for posts before it sleeps.
        case awake
        /// The next post wakes the loop.
        case asleep
        /// There may be posts that the loop hasn't taken.
        case called
    }

    private let contents = Mutex(Contents())
    private let wakefulness = Atomic(Wakefulness.asleep)
    /// The loop's thread; before it runs, the creator's.
    private let thread = Atomic(pthread_self())
    /// Closed with the inbox's last reference, so that a late post never writes to a reused descriptor.
    let descriptor: CInt

    init() throws(SystemError) {
        descriptor = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError.last("eventfd") }
    }

    deinit {
        _ = Glibc.close(descriptor)
    }

    /// Records that the loop runs on the calling thread.
    func belongsToThisThread() { thread.store(pthread_self(), ordering: .relaxed) }

    var isOfThisThread: Bool { thread.load(ordering: .relaxed) == pthread_self() }

    /// On any thread. False if the loop has ended: the work is dropped.
    func post(_ post: @escaping Post) -> Bool {
        let accepted = contents.withLock { contents in
            guard contents.isOpen else { return false }
            contents.posts.append(post)
            return true
        }
        // After the append, so that a loop that falls asleep now finds the post.
        if accepted, wakefulness.exchange(.called, ordering: .acquiringAndReleasing) == .asleep {
            _ = eventfd_write(descriptor, 1)
        }
        return accepted
    }

    /// On the loop's thread, before it sleeps. False: there may be posts, and it has to take them first.
    func fallAsleep() -> Bool {
        wakefulness.compareExchange(expected: .awake, desired: .asleep, ordering: .acquiringAndReleasing).exchanged
    }

    /// On the loop's thread, at the start of work: posts needn't wake it.
    @inline(__always)
    func wakeUp() {
        guard wakefulness.load(ordering: .relaxed) == .asleep else { return }
        _ = wakefulness.compareExchange(expected: .asleep, desired: .awake, ordering: .acquiringAndReleasing)
    }

    /// Whether there may be posts.
    var isCalled: Bool { wakefulness.load(ordering: .acquiring) == .called }

    /// The loop was woken by a post: resets the eventfd.
    func drain() {
        var count: eventfd_t = 0
        _ = eventfd_read(descriptor, &count)
    }

    /// On the loop's thread: all posts, oldest first.
    func take() -> [Post] {
        // Before the posts are taken: one in between costs another look, but isn't lost.
        wakefulness.store(.awake, ordering: .sequentiallyConsistent)
        return contents.withLock { contents in
            defer { contents.posts = [] }
            return contents.posts
        }
    }

    /// Refuses further posts, and returns those not yet taken.
    @discardableResult
    func close() -> [Post] {
        contents.withLock { contents in
            defer { contents = Contents(posts: [], isOpen: false) }
            return contents.posts
        }
    }
}

extension EventLoop {
    /// The Sendable part of a loop.
    package struct Handle: Sendable {
        let inbox: Inbox

        /// Runs `work` on the loop's thread, after earlier posts. On any thread. If false, the loop has ended and
        /// `work` never runs. If true, it runs even if the loop is stopped meanwhile.
        @discardableResult
        package func post(_ work: @escaping @Sendable (EventLoop) -> Void) -> Bool {
            inbox.post(work)
        }
    }
}
