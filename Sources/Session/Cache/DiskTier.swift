import PinproxyCaching
package import PinproxyDiskStore
package import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTLS
import Synchronization

/// The stored responses on disk, for loops. Threads of the tier wait for the disk.
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
    private static let bodyThreads = 2
    /// Look-ups and changes that wait for the disk. Beyond it a look-up is a miss.
    private static let mostWaiting = 1024
    /// Bodies that are being written.
    private static let mostWritings = 256

    private struct State {
        var store: DiskStore?
        var limit: UInt64
        var isOpening = false
        var failed: MonotonicTime?
        /// Failures since it was open.
        var failures = 0
        var isTold = false
        var isClosed = false
        /// Something that had to be removed couldn't be: nothing is found until all is.
        var mustBeEmptied = false
    }

    private let directory: String
    /// Look-ups and changes in their order: a look-up sees all removals before it.
    private let index: WorkQueue
    private let bodies: [WorkQueue]
    private let turn = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    private let writings = Atomic<Int>(0)
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
        index = try WorkQueue("cache index")
        var bodies: [WorkQueue] = []
        for _ in 0..<Self.bodyThreads { bodies.append(try WorkQueue("cache body")) }
        self.bodies = bodies
    }

    /// For the works of one body, which follow each other.
    var bodyQueue: WorkQueue { bodies[turn.add(1, ordering: .relaxed).newValue & (Self.bodyThreads - 1)] }

    /// False: too many wait.
    private func perform(_ work: @escaping @Sendable (DiskTier) -> Void) -> Bool {
        guard waiting.add(1, ordering: .relaxed).oldValue < Self.mostWaiting else {
            waiting.subtract(1, ordering: .relaxed)
            return false
        }
        index.async { [self] in
            work(self)
            waiting.subtract(1, ordering: .relaxed)
        }
        return true
    }

    /// Whether another body may be written. It ends with ``endWriting()``.
    func beginWriting() -> Bool {
        if writings.add(1, ordering: .relaxed).oldValue < Self.mostWritings { return true }
        endWriting()
        return false
    }

    func endWriting() { writings.subtract(1, ordering: .relaxed) }

    // MARK: The store

    /// Opens the store. After a change of the limit it is closed first.
    package func open(limit: Int) {
        let old = state.withLock { state -> DiskStore? in
            guard state.limit != UInt64(limit) else { return nil }
            state.limit = UInt64(limit)
            return state.store.take()
        }
        index.async { [self] in
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
        index.async { store?.close() }
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

    /// The store, without anything that had to be removed. Nil: it can't be used now. Waits for the disk.
    private func usable() -> DiskStore? {
        guard let store = opened() else { return nil }
        guard state.withLock({ $0.mustBeEmptied }) else { return store }
        guard (try? store.purgeAll()) != nil else { return nil }
        state.withLock { $0.mustBeEmptied = false }
        return store
    }

    private func mustBeEmptied() { state.withLock { $0.mustBeEmptied = true } }

    // MARK: Responses

    /// The stored response for a request.
    struct Found: Sendable {
        /// Nil: none matches.
        let response: StoredResponse?
        /// Whether the URL has other stored responses.
        let hasOthers: Bool

        static let nothing = Found(response: nil, hasOthers: false)
    }

    /// - Parameter answer: called once, on any thread.
    func find(
        _ asked: OwnedRequest, _ key: CacheKey, _ policy: CachePolicy, at now: Int64,
        answer: @escaping @Sendable (Found) -> Void
    ) {
        if !perform({ answer($0.found(asked, key, policy, at: now)) }) { answer(.nothing) }
    }

    private func found(_ asked: OwnedRequest, _ key: CacheKey, _ policy: CachePolicy, at now: Int64) -> Found {
        guard let store = usable() else { return .nothing }
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
        guard let best, let record = best.record, let body = OpenedBody(of: record, in: store, on: bodyQueue) else {
            return Found(response: nil, hasOthers: hasOthers)
        }
        store.touch(record)
        return Found(response: best.opened(body), hasOthers: hasOthers)
    }

    /// On failure, the stored response stays stale.
    func confirm(_ response: StoredResponse) {
        guard case .file(let body) = response.body else { return }
        _ = perform { tier in
            _ = try? tier.usable()?.update(body.record, head: response.head.message, metadata: response.metadata)
        }
    }

    func remove(_ body: OpenedBody) {
        change { store throws(StoringFailure) in try store.remove(body.record) }
    }

    func remove(_ key: CacheKey) {
        change { store throws(StoringFailure) in try store.purge(key: key.digest) }
    }

    /// Removes something that mustn't be found again, not even if the disk fails.
    private func change(_ work: @escaping @Sendable (DiskStore) throws(StoringFailure) -> Void) {
        let isWaiting = perform { tier in
            // A store that can't be opened is emptied once it can.
            guard let store = tier.usable() else { return tier.mustBeEmptied() }
            do throws(StoringFailure) { try work(store) } catch { tier.mustBeEmptied() }
        }
        if !isWaiting { mustBeEmptied() }
    }
}
