import PinproxyTransport
import Synchronization

/// Bytes of stored bodies in memory: in the store, or being sent to a client after they left it.
final class MemoryAccount: Sendable {
    private let taken = Atomic<Int>(0)

    var bytes: Int { taken.load(ordering: .relaxed) }

    fileprivate func take(_ count: Int) { taken.add(count, ordering: .relaxed) }
    fileprivate func giveBack(_ count: Int) { taken.subtract(count, ordering: .relaxed) }
}

/// A stored body in memory, shared by the store and all who are served.
final class StoredBytes: Sendable {
    let bytes: [UInt8]
    private let account: MemoryAccount?

    /// - Parameter account: counts the bytes as long as this object exists.
    init(_ bytes: [UInt8], in account: MemoryAccount? = nil) {
        self.bytes = bytes
        self.account = account
        account?.take(bytes.count)
    }

    deinit { account?.giveBack(bytes.count) }
}

/// A stored body, in memory or on disk.
enum StoredBody: Sendable {
    /// On disk, and not open.
    case closed
    case bytes(StoredBytes)
    case file(OpenedBody)

    var count: UInt64 {
        switch self {
        case .closed: 0
        case .bytes(let stored): UInt64(stored.bytes.count)
        case .file(let body): body.count
        }
    }

    /// Nil: it is on disk.
    var bytes: [UInt8]? { if case .bytes(let stored) = self { stored.bytes } else { nil } }
}

/// A part of a stored body in memory.
final class MemoryBody: BodySource {
    private let stored: StoredBytes
    private let part: Range<Int>
    private var position: Int

    init(_ stored: StoredBytes, _ part: Range<Int>) {
        self.stored = stored
        self.part = part
        position = part.lowerBound
    }

    var moved: UInt64 { UInt64(position - part.lowerBound) }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        // The span borrows from it.
        let bytes = stored.bytes
        do throws(StreamError) {
            if position < part.upperBound {
                position += try sink.write(bytes.span.bytes.extracting(position..<part.upperBound))
            }
        } catch {
            return .sinkFailed(error)
        }
        return position == part.upperBound ? sink.endBody() : .blocked
    }
}
