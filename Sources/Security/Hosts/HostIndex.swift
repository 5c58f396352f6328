import PinproxyAddresses

/// The search of ``HostTable``: a hash table of the patterns' suffixes, laid out for cold caches. An unknown suffix
/// costs one read of memory. A known one gives the pattern's place, for parallel reads of the record and the table's
/// value.
struct HostIndex: Sendable {
    /// Open addressing, at most half full: 0 is free, else the hash's upper half and a place, counted from 1.
    private var slots: [UInt64]
    /// In order of insertion: the index is the pattern's place.
    private var records: [Record] = []
    /// All names, concatenated.
    private var names: [UInt8] = []
    private var hasPorts = false
    private var hasOneLabel = false
    /// Bit n: some `**.` pattern has n labels; the last bit stands for all above.
    private var subtreeDepths: UInt64 = 0

    /// - Parameter patterns: to be inserted.
    init(for patterns: some Collection<HostPattern>) {
        var count = 8
        while count < patterns.count * 2 { count *= 2 }
        slots = [UInt64](repeating: 0, count: count)
        records.reserveCapacity(patterns.count)
        names.reserveCapacity(patterns.reduce(0) { $0 + $1.name.utf8.count })
    }

    var count: Int { records.count }

    /// Inserts a pattern at the next place, or finds an equal one.
    mutating func insert(_ pattern: HostPattern) -> (place: Int, isNew: Bool) {
        let name = pattern.name.utf8.span
        var suffix = SuffixHash()
        for index in name.indices.reversed() { suffix.append(name[index]) }
        if let place = find(suffix, pattern.scope, name, 0..<name.count, pattern.port) { return (place, false) }

        let place = records.count
        records.append(Record(start: names.count, pattern.scope, length: name.count, pattern.port))
        names.append(contentsOf: pattern.name.utf8)
        let hash = suffix.finish(scope: pattern.scope, port: pattern.port)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = (hash >> 32) << 32 | UInt64(UInt32(place + 1))

        if pattern.port != nil { hasPorts = true }
        if pattern.scope == .oneLabel { hasOneLabel = true }
        if pattern.scope == .subtree { subtreeDepths |= 1 << UInt64(min(pattern.labelCount, 63)) }
        return (place, true)
    }

    func pattern(at place: Int) -> HostPattern {
        let record = records[place]
        return HostPattern(
            record.scope, canonical: String(decoding: names[record.name], as: UTF8.self), port: record.port)
    }

    func find(_ host: String, port: UInt16) -> Int? {
        guard !records.isEmpty else { return nil }
        if IPAddress.isMeant(by: host.utf8.span) {
            guard let address = IPAddress(host)?.canonical else { return nil }
            if let place = lookUp(address.description.utf8.span, port, isAddress: true) { return place }
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
        var parentHash: SuffixHash?
        let parent = hasOneLabel && !isAddress ? Self.parent(of: host, end) : nil
        var index = end
        while index > 0 {
            index -= 1
            let byte = host[index]
            if byte == UInt8(ascii: "."), !isAddress {
                if subtreeDepths & (1 << UInt64(min(depth, 63))) != 0 {
                    // Longer suffixes come later and win.
                    subtree = probe(hash, .subtree, host, (index + 1)..<end, port) ?? subtree
                }
                if index + 1 == parent { parentHash = hash }
                depth += 1
            }
            hash.append(byte)
        }
        guard end > 0 else { return nil }
        if let exact = probe(hash, .exact, host, 0..<end, port) { return exact }
        // Last: most listed hosts have an entry of their name, which saves this read.
        if let parent, let parentHash, let oneLabel = probe(parentHash, .oneLabel, host, parent..<end, port) {
            return oneLabel
        }
        if !isAddress, subtreeDepths & (1 << UInt64(min(depth, 63))) != 0 {
            subtree = probe(hash, .subtree, host, 0..<end, port) ?? subtree
        }
        return subtree
    }

    /// The start of the name without its first label.
    private static func parent(of host: Span<UInt8>, _ end: Int) -> Int? {
        for index in 1..<max(end, 1) where host[index] == UInt8(ascii: ".") { return index + 1 }
        return nil
    }

    /// The entry for a name and scope: with the port if there is one, else without.
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
                let record = records[place]
                if record.isLike(scope: scope, length: range.count, port: port),
                    names.span.extracting(record.name).spells(host.extracting(range))
                {
                    return place
                }
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }
}

/// Distinguishes patterns of one hash, in eight bytes.
private struct Record {
    private let start: UInt32
    /// 0: every port.
    private let portNumber: UInt16
    let scope: HostPattern.Scope
    private let length: UInt8

    init(start: Int, _ scope: HostPattern.Scope, length: Int, _ port: UInt16?) {
        self.start = UInt32(start)
        portNumber = port ?? 0
        self.scope = scope
        self.length = UInt8(length)
    }

    var name: Range<Int> { Int(start)..<Int(start) + Int(length) }
    var port: UInt16? { portNumber == 0 ? nil : portNumber }

    func isLike(scope: HostPattern.Scope, length: Int, port: UInt16?) -> Bool {
        self.scope == scope && self.length == length && portNumber == port ?? 0
    }
}

/// The hash of a name's last bytes, extended to the left (FNV-1a, mixed at the end). Unseeded: the names are the
/// administrator's, so clients can't lengthen its chains.
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
