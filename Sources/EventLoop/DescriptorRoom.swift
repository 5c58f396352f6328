/// Descriptors that libevent has allocated memory for, some forty bytes each. Allocated one at a time during a peak, it
/// would pin the peak's pages (25 MB after 3,000 clients), so blocks are allocated at first use.
struct DescriptorRoom {
    private static let blockSize = 256

    private var isMade: [Bool] = []

    /// The numbers to allocate for before `descriptor` is watched, at first use of a block.
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
