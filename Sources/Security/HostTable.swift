/// The entries of the pin file by host: one question, one answer, at the cost of a few probes.
///
/// A lookup reads the host once, from its end, and at each dot has the hash of the suffix that
/// begins there; so it asks the table once for each label, whatever the number of entries, and
/// allocates nothing (an address does: its canonical text). Ranks that no entry uses are not asked
/// for at all. The rules of precedence are those of ``HostPattern``.
///
/// The table is built once for each generation of the configuration, and immutable.
package struct HostTable<Value: Sendable>: Sendable {
    package struct Entry: Sendable {
        package let pattern: HostPattern
        package let value: Value
    }

    /// In the order in which they were given, without the duplicates.
    package let entries: [Entry]
    /// Patterns that were given more than once, as indices of the list given: the later one and
    /// the first. Each is a mistake for the caller to report; the first entry holds the place.
    package let duplicates: [(later: Int, first: Int)]

    /// Open addressing: 0 is free, else the upper half of the hash and the entry's index plus one.
    private let slots: [UInt64]
    private let hasPorts: Bool
    /// Bit n (the last stands for all above): some `**.` pattern has n labels.
    private let subtreeDepths: UInt64
    private let hasOneLabel: Bool

    package init(_ list: [(pattern: HostPattern, value: Value)] = []) {
        var capacity = 8
        while capacity < list.count * 2 { capacity *= 2 }
        var slots = [UInt64](repeating: 0, count: capacity)
        var entries: [Entry] = []
        var positions: [Int] = []
        entries.reserveCapacity(list.count)
        var duplicates: [(later: Int, first: Int)] = []
        var hasPorts = false
        var hasOneLabel = false
        var subtreeDepths: UInt64 = 0
        for (position, (pattern, value)) in list.enumerated() {
            let hash = Self.hash(of: pattern)
            var slot = Self.firstSlot(hash, slots.count)
            var duplicate = false
            while slots[slot] != 0 {
                let index = Int(slots[slot] & 0xffff_ffff) - 1
                if slots[slot] >> 32 == hash >> 32, entries[index].pattern == pattern {
                    duplicates.append((later: position, first: positions[index]))
                    duplicate = true
                    break
                }
                slot = (slot + 1) & (slots.count - 1)
            }
            if duplicate { continue }
            entries.append(Entry(pattern: pattern, value: value))
            positions.append(position)
            slots[slot] = (hash >> 32) << 32 | UInt64(entries.count)
            if pattern.port != nil { hasPorts = true }
            if pattern.scope == .oneLabel { hasOneLabel = true }
            if pattern.scope == .subtree { subtreeDepths |= 1 << UInt64(min(pattern.labelCount, 63)) }
        }
        self.slots = slots
        self.entries = entries
        self.duplicates = duplicates
        self.hasPorts = hasPorts
        self.hasOneLabel = hasOneLabel
        self.subtreeDepths = subtreeDepths
    }

    /// The entry that decides for a host, or `nil` when none speaks for it.
    /// - Parameter host: a name in any case, with or without its trailing dot, or an address
    ///   without brackets.
    package func entry(forHost host: String, port: UInt16) -> Entry? {
        guard !entries.isEmpty else { return nil }
        if HostAddress.looksLikeAddress(host.utf8.span) {
            guard let address = HostAddress(host) else { return nil }
            return lookUp(address.description.utf8.span, port, isAddress: true).map { entries[$0] }
        }
        return lookUp(host.utf8.span, port, isAddress: false).map { entries[$0] }
    }

    private func lookUp(_ host: Span<UInt8>, _ port: UInt16, isAddress: Bool) -> Int? {
        var end = host.count
        if end > 0, !isAddress, host[end - 1] == UInt8(ascii: ".") { end -= 1 }
        var hash = SuffixHash()
        var depth = 1
        var subtree: Int?
        var oneLabel: Int?
        let parent = hasOneLabel && !isAddress ? Self.parent(of: host, end) : nil
        var index = end
        while index > 0 {
            index -= 1
            let byte = host[index]
            if byte == UInt8(ascii: "."), !isAddress {
                if subtreeDepths & (1 << UInt64(min(depth, 63))) != 0 {
                    // Longer suffixes come later in this walk, and win.
                    subtree = probe(hash, .subtree, host, (index + 1)..<end, port) ?? subtree
                }
                if index + 1 == parent {
                    oneLabel = probe(hash, .oneLabel, host, (index + 1)..<end, port)
                }
                depth += 1
            }
            hash.append(byte)
        }
        guard end > 0 else { return nil }
        if let exact = probe(hash, .exact, host, 0..<end, port) { return exact }
        if let oneLabel { return oneLabel }
        if !isAddress, subtreeDepths & (1 << UInt64(min(depth, 63))) != 0 {
            subtree = probe(hash, .subtree, host, 0..<end, port) ?? subtree
        }
        return subtree
    }

    /// Where the name begins that is one label shorter than the host.
    private static func parent(of host: Span<UInt8>, _ end: Int) -> Int? {
        for index in 1..<max(end, 1) where host[index] == UInt8(ascii: ".") { return index + 1 }
        return nil
    }

    /// The entry for one name and scope: with the port if there is one, else without.
    private func probe(
        _ hash: SuffixHash, _ scope: HostPattern.Scope, _ host: Span<UInt8>, _ range: Range<Int>,
        _ port: UInt16
    ) -> Int? {
        if hasPorts, let found = find(hash, scope, host, range, port) { return found }
        return find(hash, scope, host, range, nil)
    }

    private func find(
        _ suffix: SuffixHash, _ scope: HostPattern.Scope, _ host: Span<UInt8>, _ range: Range<Int>,
        _ port: UInt16?
    ) -> Int? {
        let hash = suffix.finish(scope: scope, port: port)
        var slot = Self.firstSlot(hash, slots.count)
        while slots[slot] != 0 {
            if slots[slot] >> 32 == hash >> 32 {
                let index = Int(slots[slot] & 0xffff_ffff) - 1
                let pattern = entries[index].pattern
                if pattern.scope == scope, pattern.port == port,
                    Self.equal(pattern.name.utf8.span, host, range)
                {
                    return index
                }
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    private static func equal(_ name: Span<UInt8>, _ host: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard name.count == range.count else { return false }
        for index in 0..<name.count where name[index] != lowercase(host[range.lowerBound + index]) {
            return false
        }
        return true
    }

    private static func hash(of pattern: HostPattern) -> UInt64 {
        var hash = SuffixHash()
        for byte in pattern.name.utf8.reversed() { hash.append(byte) }
        return hash.finish(scope: pattern.scope, port: pattern.port)
    }

    private static func firstSlot(_ hash: UInt64, _ count: Int) -> Int {
        Int(truncatingIfNeeded: hash) & (count - 1)
    }
}

/// The hash of a name's last bytes, grown to the left one byte at a time (FNV-1a, mixed at the end).
///
/// Unseeded on purpose: the names in the table are the administrator's own, so a client can choose
/// only which chain it walks, not how long the chains are.
private struct SuffixHash {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func append(_ byte: UInt8) {
        state = (state ^ UInt64(lowercase(byte))) &* 0x100_0000_01b3
    }

    func finish(scope: HostPattern.Scope, port: UInt16?) -> UInt64 {
        var value = state ^ UInt64(scope.rawValue) << 56 ^ UInt64(port ?? 0) << 32
        value = (value ^ value >> 33) &* 0xff51_afd7_ed55_8ccd
        value = (value ^ value >> 33) &* 0xc4ce_b9fe_1a85_ec53
        return value ^ value >> 33
    }
}

private func lowercase(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
