import Synchronization

/// A response whose body arrives to be stored. What is removed meanwhile isn't stored: an unsafe request or a purge may
/// have made it useless (RFC 9111 section 4.4).
final class Arrival: Sendable {
    private let isAbandoned = Atomic(false)

    var isWanted: Bool { !isAbandoned.load(ordering: .relaxed) }

    func abandon() { isAbandoned.store(true, ordering: .relaxed) }
}
