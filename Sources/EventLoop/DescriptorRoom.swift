/// The descriptors for which libevent has made room: some forty bytes for each number ever watched. Made one at a time
/// among a peak's memory they would hold back its pages (25 MB after 3,000 clients), so blocks are made at first use.
struct DescriptorRoom {
    private static let blockSize = 256

    private var isMade: [Bool] = []

    /// The numbers to make room for before `descriptor` is watched; nil if that was done. At first use of a block only.
    mutating func need(for descriptor: CInt) -> Range<CInt>? {
        guard descriptor >= 0 else { return nil }
        let block = Int(descriptor) / Self.blockSize
        if block < isMade.count, isMade[block] { return nil }
        while isMade.count <= block { isMade.append(false) }
        isMade[block] = true
        let first = block * Self.blockSize
        return CInt(clamping: first)..<CInt(clamping: first + Self.blockSize)
    }
}
