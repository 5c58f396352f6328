/// The search of ``HostTable``: patterns by the hosts that they speak for, found through a hash table of their suffixes.
///
/// It is laid out for a lookup that finds nothing in the processor's caches, as it is after other work:
/// a suffix that no pattern has costs one read of memory, one that a pattern has costs two neighbouring
/// ones more. So there is nothing here but numbers in two arrays. The patterns themselves are kept nowhere else: a
/// pattern is known by its record's number, and made of the record where somebody asks for it.
struct HostIndex: Sendable {
    /// Open addressing, at most half full: 0 is free, else the upper half of the hash and a record.
    private var slots: [UInt64]
    /// One record after the other: a ``Head``, then the name in words of eight bytes, the first byte
    /// lowest. The first word belongs to none, so that no record is 0.
    private var records: [UInt64] = [0]
    private var count = 0
    private var hasPorts = false
    private var hasOneLabel = false
    /// Bit n (the last stands for all above): some `**.` pattern has n labels.
    private var subtreeDepths: UInt64 = 0

    /// - Parameter patterns: which will be inserted, at most.
    init(for patterns: some Collection<HostPattern>) {
        var count = 8
        while count < patterns.count * 2 { count *= 2 }
        slots = [UInt64](repeating: 0, count: count)
        records.reserveCapacity(patterns.reduce(1) { $0 + 1 + ($1.name.utf8.count + 7) / 8 })
    }

    /// Inserts a pattern, with the place after those before it; or finds an equal one that was there already.
    mutating func insert(_ pattern: HostPattern) -> (record: Int, isNew: Bool) {
        let name = pattern.name.utf8.span
        var suffix = SuffixHash()
        for index in name.indices.reversed() { suffix.append(name[index]) }
        if let record = find(suffix, pattern.scope, name, 0..<name.count, pattern.port) { return (record, false) }

        let record = records.count
        records.append(Head(place: count, scope: pattern.scope, length: name.count, port: pattern.port).word)
        for start in stride(from: 0, to: name.count, by: 8) {
            var word: UInt64 = 0
            for index in start..<min(start + 8, name.count) { word |= UInt64(name[index]) << (index % 8 * 8) }
            records.append(word)
        }
        let hash = suffix.finish(scope: pattern.scope, port: pattern.port)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = (hash >> 32) << 32 | UInt64(record)

        count += 1
        if pattern.port != nil { hasPorts = true }
        if pattern.scope == .oneLabel { hasOneLabel = true }
        if pattern.scope == .subtree { subtreeDepths |= 1 << UInt64(min(pattern.labelCount, 63)) }
        return (record, true)
    }

    /// How many patterns were inserted before the one with this record.
    func place(of record: Int) -> Int { Head(word: records[record]).place }

    func pattern(of record: Int) -> HostPattern {
        let head = Head(word: records[record])
        let name = String(unsafeUninitializedCapacity: head.length) { bytes in
            for index in 0..<head.length {
                bytes[index] = UInt8(truncatingIfNeeded: records[record + 1 + index / 8] >> UInt64(index % 8 * 8))
            }
            return head.length
        }
        return HostPattern(head.scope, canonical: name, port: head.port)
    }

    /// The records in the order of their places.
    var allRecords: [Int] {
        var all: [Int] = []
        all.reserveCapacity(count)
        var next = 1
        while next < records.count {
            all.append(next)
            next += 1 + (Head(word: records[next]).length + 7) / 8
        }
        return all
    }

    /// The record of the most specific pattern for a host.
    func find(_ host: String, port: UInt16) -> Int? {
        guard count > 0 else { return nil }
        if HostAddress.looksLikeAddress(host.utf8.span) {
            guard let address = HostAddress(host)?.canonical else { return nil }
            if let record = lookUp(address.description.utf8.span, port, isAddress: true) { return record }
            guard let translated = address.translated else { return nil }
            return lookUp(translated.description.utf8.span, port, isAddress: true)
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
                let record = Int(slots[slot] & 0xffff_ffff)
                let head = Head(word: records[record])
                if head.isLike(scope: scope, length: range.count, port: port), equal(record + 1, host, range) {
                    return record
                }
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    /// Whether the words from the first one on spell this part of the host.
    private func equal(_ first: Int, _ host: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var (next, word) = (first, UInt64(0))
        for index in 0..<range.count {
            if index % 8 == 0 { (next, word) = (next + 1, records[next]) }
            guard UInt8(truncatingIfNeeded: word) == lowercase(host[range.lowerBound + index]) else { return false }
            word >>= 8
        }
        return true
    }
}

/// The first word of a record: from the lowest bit a pattern's place (32 bits), its port or 0 (16), its
/// scope (8) and the bytes of its name (8).
private struct Head {
    let word: UInt64

    init(word: UInt64) { self.word = word }

    init(place: Int, scope: HostPattern.Scope, length: Int, port: UInt16?) {
        word = UInt64(place) | Self.key(scope, length, port) << 32
    }

    var place: Int { Int(word & 0xffff_ffff) }
    var port: UInt16? { UInt16(truncatingIfNeeded: word >> 32) == 0 ? nil : UInt16(truncatingIfNeeded: word >> 32) }
    var scope: HostPattern.Scope { HostPattern.Scope(rawValue: UInt8(truncatingIfNeeded: word >> 48)) ?? .exact }
    var length: Int { Int(word >> 56) }

    func isLike(scope: HostPattern.Scope, length: Int, port: UInt16?) -> Bool {
        word >> 32 == Self.key(scope, length, port)
    }

    private static func key(_ scope: HostPattern.Scope, _ length: Int, _ port: UInt16?) -> UInt64 {
        UInt64(port ?? 0) | UInt64(scope.rawValue) << 16 | UInt64(length) << 24
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
