import Caching
package import DiskStore
package import EventLoop
import HTTPWire
import Synchronization
import TLS

/// The stored responses on disk, for loops. Two threads wait for the disk.
package final class DiskTier: Sendable {
    /// An event for the log.
    package enum Notice: Sendable {
        case event(DiskStoreEvent)
        /// Nothing is stored or found until it can be opened.
        case unavailable(String)
        case available
    }

    /// After a failure to open it, as when another process still has it.
    private static let pauseNanoseconds: UInt64 = 5_000_000_000
    private static let threads = 2

    private struct State {
        var store: DiskStore?
        var limit: UInt64
        var isOpening = false
        var failed: MonotonicTime?
        /// Failures since it was open.
        var failures = 0
        var isTold = false
        var isClosed = false
    }

    private let directory: String
    private let queues: [WorkQueue]
    private let turn = Atomic<Int>(0)
    private let state: Mutex<State>
    private let notify: @Sendable (Notice) -> Void

    /// - Parameters:
    ///   - limit: bytes.
    ///   - notify: called on any thread.
    package init(
        directory: String, limit: Int, notify: @escaping @Sendable (Notice) -> Void = { _ in }
    ) throws(SystemError) {
        self.directory = directory
        self.notify = notify
        state = Mutex(State(limit: UInt64(limit)))
        var queues: [WorkQueue] = []
        for _ in 0..<Self.threads { queues.append(try WorkQueue("cache")) }
        self.queues = queues
    }

    /// For the works of one response, which follow each other.
    var queue: WorkQueue { queues[turn.add(1, ordering: .relaxed).newValue & (Self.threads - 1)] }

    // MARK: The store

    /// Opens the store. After a change of the limit it is closed first.
    package func open(limit: Int) {
        let old = state.withLock { state -> DiskStore? in
            guard state.limit != UInt64(limit) else { return nil }
            state.limit = UInt64(limit)
            return state.store.take()
        }
        queue.async { [self] in
            old?.close()
            _ = opened()
        }
    }

    /// Lets another process have it.
    package func close() {
        let store = state.withLock { state in
            state.isClosed = true
            return state.store.take()
        }
        queue.async { store?.close() }
    }

    /// Nil: it can't be opened now. Waits for the disk.
    func opened() -> DiskStore? {
        let (store, limit) = state.withLock { state -> (DiskStore?, UInt64?) in
            if let store = state.store { return (store, nil) }
            let isEarly = state.failed.map { MonotonicTime.now() - $0 < Self.pauseNanoseconds } ?? false
            guard !state.isClosed, !state.isOpening, !isEarly else { return (nil, nil) }
            state.isOpening = true
            return (nil, state.limit)
        }
        guard store == nil, let limit else { return store }
        do throws(DirectoryRefusal) {
            let store = try DiskStore(directory: directory, limit: limit, report: { [notify] in notify(.event($0)) })
            let wasTold = state.withLock { state in
                defer { (state.isOpening, state.failed, state.failures, state.isTold) = (false, nil, 0, false) }
                if !state.isClosed, state.limit == limit { state.store = store }
                return state.isTold
            }
            if wasTold { notify(.available) }
            return store
        } catch {
            let isNews = state.withLock { state in
                (state.isOpening, state.failed) = (false, .now())
                state.failures += 1
                // The process that this one takes over from lets it go in a moment.
                if case .inUse = error, state.failures == 1 { return false }
                defer { state.isTold = true }
                return !state.isTold
            }
            if isNews { notify(.unavailable("\(error)")) }
            return nil
        }
    }

    /// The store, if it is open; costs nothing.
    package var store: DiskStore? { state.withLock { $0.store } }

    // MARK: Responses

    /// What is stored for a request.
    struct Found: Sendable {
        /// Nil: none matches.
        let response: StoredResponse?
        /// Others of the URL are there.
        let hasOthers: Bool
    }

    /// - Parameter answer: called once, on the loop.
    func find(
        _ asked: OwnedRequest, _ key: CacheKey, _ policy: CachePolicy, at now: Int64,
        answer: @escaping @Sendable (Found) -> Void
    ) {
        queue.async { [self] in
            guard let store = opened() else { return answer(Found(response: nil, hasOthers: false)) }
            let request = asked.view
            let mark = policy.digest.bytes
            var hasOthers = false
            var best: StoredResponse?
            for record in store.records(of: key.digest) where record.identity.variant.starts(with: mark) {
                guard let response = StoredResponse(record, policy, asked), response.validUntil > now else { continue }
                hasOthers = true
                guard record.identity.variant == response.variant, response.matches(request),
                    response.times.received >= best?.times.received ?? .min
                else { continue }
                best = response
            }
            // Opened before the answer: a body that can't be read is a miss.
            guard let best, let record = best.record, let body = OpenedBody(of: record, in: store) else {
                return answer(Found(response: nil, hasOthers: hasOthers))
            }
            store.touch(record)
            let response = best.opened(body)
            answer(Found(response: response, hasOthers: hasOthers))
        }
    }

    func confirm(_ response: StoredResponse) {
        guard case .file(let body) = response.body else { return }
        queue.async { [self] in
            guard let store = opened() else { return }
            _ = try? store.update(body.record, head: response.head.message, metadata: response.metadata)
        }
    }

    func remove(_ body: OpenedBody) { queue.async { [self] in try? store?.remove(body.record) } }

    func remove(_ key: CacheKey) { queue.async { [self] in _ = try? opened()?.purge(key: key.digest) } }
}
