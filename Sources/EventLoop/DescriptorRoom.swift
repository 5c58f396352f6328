/// The descriptors for which libevent has made room.
///
/// It keeps some forty bytes for each number that was ever watched, to the end of the base. Made one at a time, between
/// what a peak of clients takes, each of them holds a page of 4 KiB back when the peak's memory is given back to the
/// system: 25 MB after 3,000 clients. So they are made side by side, for a block of numbers at its first use.
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
