internal import CPinproxyShims
internal import Glibc
internal import Synchronization

// One idea with EventLoop.swift: the part of a loop that other threads touch.

/// A loop's queue of closures from any thread; an eventfd wakes the loop once a batch.
final class Inbox: Sendable {
    typealias Post = @Sendable (EventLoop) -> Void

    private struct Contents {
        var posts: [Post] = []
        var isOpen = true
    }

    private let contents = Mutex(Contents())
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
        let (accepted, isFirst) = contents.withLock { contents in
            guard contents.isOpen else { return (false, false) }
            contents.posts.append(post)
            return (true, contents.posts.count == 1)
        }
        // The first of a batch wakes the loop for all.
        if isFirst { _ = eventfd_write(descriptor, 1) }
        return accepted
    }

    /// On the loop's thread: all posts, oldest first.
    func take() -> [Post] {
        // Reset the counter first: a post in between costs an empty wake-up, but isn't lost.
        var count: eventfd_t = 0
        _ = eventfd_read(descriptor, &count)
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
