import PinproxyDiskStore
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTLS
import PinproxyTransport
import Synchronization

/// Stores the body of a response while it arrives.
protocol BodyKeeper: AnyObject {
    /// False: it can't be kept.
    func append(_ piece: RawSpan) -> Bool
}

/// Keeps a body in memory.
final class MemoryKeeper: BodyKeeper {
    let arrival = Arrival()
    private let key: CacheKey
    private let memory: MemoryStore
    private let limit: Int
    private let reservation: BodyReservation
    private(set) var bytes: [UInt8] = []

    /// - Parameter limit: bytes.
    init(for key: CacheKey, in memory: MemoryStore, limit: Int, from budget: BodyBudget) {
        self.key = key
        self.memory = memory
        self.limit = limit
        reservation = BodyReservation(of: budget, for: .cache)
        memory.begin(arrival, of: key)
    }

    deinit { memory.end(arrival, of: key) }

    func append(_ piece: RawSpan) -> Bool {
        let length = bytes.count + piece.byteCount
        guard length <= limit, reservation.grow(to: length) else { return false }
        bytes.append(copying: piece)
        return true
    }
}

/// Writes a body to disk, on a thread that may wait for it.
final class DiskKeeper: BodyKeeper {
    /// Bytes that may wait for the disk. A slower disk stores nothing: no client waits for it.
    private static let mostWaiting = 8 << 20

    /// Kept by the works that wait for the disk, so that what they hold stays counted.
    private final class Writing: Sendable {
        let waiting = Atomic<Int>(0)
        let hasFailed = Atomic(false)
        // Used on the queue alone, which runs one work at a time.
        let place = Mutex<BodyWriter?>(nil)
        let reservation: BodyReservation
        private let tier: DiskTier

        init(_ tier: DiskTier, _ budget: BodyBudget) {
            self.tier = tier
            reservation = BodyReservation(of: budget, for: .cache)
        }

        deinit { tier.endWriting() }

        /// Ends the writing on the queue: it may wait for the disk.
        func drop() { place.withLock { $0 = nil } }
    }

    private let queue: WorkQueue
    private let writing: Writing
    private(set) var length = 0

    /// Nil: too many bodies wait for the disk.
    init?(_ identity: StoredRecord.Identity, in tier: DiskTier, from budget: BodyBudget) {
        guard tier.beginWriting() else { return nil }
        queue = tier.bodyQueue
        writing = Writing(tier, budget)
        queue.async { [tier, writing] in
            do throws(StoringFailure) {
                guard let store = tier.opened() else { throw .closed }
                var writer: BodyWriter? = try store.writer(identity)
                writing.place.withLock { $0 = writer.take() }
            } catch {
                writing.hasFailed.store(true, ordering: .relaxed)
            }
        }
    }

    deinit { queue.async { [writing] in writing.drop() } }

    func append(_ piece: RawSpan) -> Bool {
        let waiting = writing.waiting.add(piece.byteCount, ordering: .relaxed).newValue
        guard !writing.hasFailed.load(ordering: .relaxed), waiting <= Self.mostWaiting,
            writing.reservation.resize(to: waiting)
        else { return false }
        length += piece.byteCount
        let bytes = [UInt8](copying: piece)
        queue.async { [writing] in
            writing.place.withLock { writer in
                do throws(StoringFailure) {
                    try writer?.append(bytes)
                } catch {
                    writer = nil
                    writing.hasFailed.store(true, ordering: .relaxed)
                }
            }
            writing.waiting.subtract(bytes.count, ordering: .relaxed)
        }
        return true
    }

    /// Stores what was written.
    func commit(head: [UInt8], metadata: [UInt8], stored: @escaping @Sendable () -> Void) {
        queue.async { [writing] in
            let writer = writing.place.withLock { $0.take() }
            guard let writer, (try? writer.commit(head: head, metadata: metadata)) != nil else { return }
            stored()
        }
    }
}
