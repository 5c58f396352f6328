package import PinproxyTLS
import Synchronization

/// The issued leaves by host: bounded, and shared by all workers. Other authorities get a new cache. Each entry has a
/// lock for signing (60 µs); the table's lock is held for a dictionary lookup only. A leaf is replaced after half of
/// its life. A full cache evicts by the clock algorithm.
package final class LeafCache: Sendable {
    /// The bound is too low if evictions rival the leaves issued.
    package struct Statistics: Sendable, Equatable {
        package var entries = 0
        package var issued = 0
        package var evicted = 0

        package init(entries: Int = 0, issued: Int = 0, evicted: Int = 0) {
            (self.entries, self.issued, self.evicted) = (entries, issued, evicted)
        }
    }

    package let authorities: AuthoritySet
    private let lifetime: Int64
    private let capacity: Int
    private let table = Mutex(Table())

    /// - Parameters:
    ///   - lifetime: seconds, `authority.leaf_lifetime`.
    ///   - capacity: hosts; a leaf takes about 3 KiB.
    package init(authorities: AuthoritySet, lifetime: Int64, capacity: Int = 4096) {
        self.authorities = authorities
        self.lifetime = lifetime
        self.capacity = max(capacity, 1)
    }

    package convenience init(authority: LocalAuthority, lifetime: Int64, capacity: Int = 4096) {
        self.init(authorities: AuthoritySet(authority), lifetime: lifetime, capacity: capacity)
    }

    /// An empty cache for other authorities, with this one's counts.
    package func replacing(_ authorities: AuthoritySet) -> LeafCache {
        let fresh = LeafCache(authorities: authorities, lifetime: lifetime, capacity: capacity)
        let (issued, evicted) = table.withLock { ($0.issued, $0.evicted) }
        fresh.table.withLock { ($0.issued, $0.evicted) = (issued, evicted) }
        return fresh
    }

    /// The identity for a host, on any thread. May wait for another thread that is issuing it.
    package func identity(for name: ServerName, now: UnixTime) throws(AuthorityError) -> Identity {
        let entry = table.withLock { $0.entry(for: name, capacity: capacity) }
        let (identity, isNew) = try entry.identity(now: now) { () throws(AuthorityError) in
            // A signer's leaves come by keep(_:for:now:).
            try authorities.signer(at: now).mint(for: name, at: now, lifetime: lifetime)
        }
        if isNew { table.withLock { $0.issued += 1 } }
        return identity
    }

    /// Whether a leaf for the host has to be asked for first; nil: none has to.
    package func request(for name: ServerName, port: UInt16, now: UnixTime) -> LeafRequest? {
        let signer = authorities.signer(at: now)
        guard signer.isSignedElsewhere, !table.withLock({ $0.entry(for: name, capacity: capacity) }).isFresh(at: now)
        else { return nil }
        return signer.request(for: name, port: port)
    }

    /// Keeps a signer's leaf, in DER, once a strict client would accept it for the host. A request for another
    /// authority than the present one was overtaken by a reload: its leaf is dropped.
    package func keep(_ der: [UInt8], for request: LeafRequest, now: UnixTime) throws(AuthorityError) {
        let (signer, name) = (authorities.signer(at: now), request.host)
        guard signer.request(for: name, port: request.port) == request else { return }
        let identity = try signer.identity(of: der, for: name, at: now)
        table.withLock { table in
            table.issued += 1
            return table.entry(for: name, capacity: capacity)
        }.keep(identity, now: now)
    }

    package var statistics: Statistics {
        table.withLock { Statistics(entries: $0.slots.count, issued: $0.issued, evicted: $0.evicted) }
    }
}

private final class Entry: Sendable {
    /// Handshakes after which parsing the leaf pays.
    private static let many = 64

    private struct Leaf {
        var identity: Identity
        var uses = 0
        /// The leaf is replaced at this time, and before ``notBefore`` (a clock set back).
        let renewal: UnixTime
        let notBefore: UnixTime

        init(_ identity: Identity, now: UnixTime) {
            self.identity = identity
            let certificate = identity.leaf
            renewal = now + (certificate.notAfter - now) / 2
            notBefore = certificate.notBefore
        }

        func isFresh(at now: UnixTime) -> Bool { now >= notBefore && now < renewal }
    }

    private let leaf = Mutex<Leaf?>(nil)

    func identity(
        now: UnixTime, issue: () throws(AuthorityError) -> Identity
    ) throws(AuthorityError) -> (Identity, isNew: Bool) {
        try leaf.withLock { leaf throws(AuthorityError) in
            if let kept = leaf, kept.isFresh(at: now) {
                leaf?.uses += 1
                guard kept.uses + 1 == Self.many else { return (kept.identity, false) }
                let parsed = kept.identity.parsedAgain
                leaf?.identity = parsed
                return (parsed, false)
            }
            let identity = try issue()
            leaf = Leaf(identity, now: now)
            return (identity, true)
        }
    }

    func isFresh(at now: UnixTime) -> Bool { leaf.withLock { $0?.isFresh(at: now) ?? false } }

    func keep(_ identity: Identity, now: UnixTime) { leaf.withLock { $0 = Leaf(identity, now: now) } }
}

private struct Table {
    struct Slot {
        let name: ServerName
        let entry: Entry
        var isUsed: Bool
    }

    private var places: [ServerName: Int] = [:]
    private(set) var slots: [Slot] = []
    private var hand = 0
    var issued = 0
    var evicted = 0

    mutating func entry(for name: ServerName, capacity: Int) -> Entry {
        if let place = places[name] {
            slots[place].isUsed = true
            return slots[place].entry
        }
        // Unused until the next request: hosts seen once are evicted first.
        let slot = Slot(name: name, entry: Entry(), isUsed: false)
        if slots.count < capacity {
            places[name] = slots.count
            slots.append(slot)
            return slot.entry
        }
        while slots[hand].isUsed {
            slots[hand].isUsed = false
            hand = (hand + 1) % slots.count
        }
        places[slots[hand].name] = nil
        slots[hand] = slot
        places[name] = hand
        hand = (hand + 1) % slots.count
        evicted += 1
        return slot.entry
    }
}
