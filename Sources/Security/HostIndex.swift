/// The search of ``HostTable``: patterns by place, found through a hash table of their suffixes.
struct HostIndex: Sendable {
    private(set) var patterns: [HostPattern] = []
    /// Open addressing: 0 is free, else the upper half of the hash and the pattern's place plus one.
    private var slots: [UInt64]
    private var hasPorts = false
    private var hasOneLabel = false
    /// Bit n (the last stands for all above): some `**.` pattern has n labels.
    private var subtreeDepths: UInt64 = 0

    /// - Parameter capacity: patterns that will be inserted, at most.
    init(capacity: Int) {
        var count = 8
        while count < capacity * 2 { count *= 2 }
        slots = [UInt64](repeating: 0, count: count)
        patterns.reserveCapacity(capacity)
    }

    /// Inserts a pattern behind the others; the place of an equal one if it was there already.
    mutating func insert(_ pattern: HostPattern) -> Int? {
        let hash = Self.hash(of: pattern)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0 {
            let place = Int(slots[slot] & 0xffff_ffff) - 1
            if slots[slot] >> 32 == hash >> 32, patterns[place] == pattern { return place }
            slot = (slot + 1) & (slots.count - 1)
        }
        patterns.append(pattern)
        slots[slot] = (hash >> 32) << 32 | UInt64(patterns.count)
        if pattern.port != nil { hasPorts = true }
        if pattern.scope == .oneLabel { hasOneLabel = true }
        if pattern.scope == .subtree { subtreeDepths |= 1 << UInt64(min(pattern.labelCount, 63)) }
        return nil
    }

    /// The place of the most specific pattern for a host.
    func find(_ host: String, port: UInt16) -> Int? {
        guard !patterns.isEmpty else { return nil }
        if HostAddress.looksLikeAddress(host.utf8.span) {
            guard let address = HostAddress(host) else { return nil }
            return lookUp(address.description.utf8.span, port, isAddress: true)
        }
        return lookUp(host.utf8.span, port, isAddress: false)
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
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0 {
            if slots[slot] >> 32 == hash >> 32 {
                let place = Int(slots[slot] & 0xffff_ffff) - 1
                if patterns[place].scope == scope, patterns[place].port == port,
                    Self.equal(patterns[place].name.utf8.span, host, range)
                {
                    return place
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
