import Synchronization

/// A response to store once its body has arrived. If it is removed meanwhile it isn't stored: an unsafe request or a
/// purge may have invalidated it (RFC 9111 section 4.4).
final class Arrival: Sendable {
    private let isAbandoned = Atomic(false)

    var isWanted: Bool { !isAbandoned.load(ordering: .relaxed) }

    func abandon() { isAbandoned.store(true, ordering: .relaxed) }
}
