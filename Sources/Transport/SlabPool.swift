/// The memory that a worker's connections read into: a slab each while bytes pass. Single-threaded.
package final class SlabPool {
    /// Four full TLS records, and a head in front of them.
    package static let slabSize = (64 << 10) + 1024
    /// For bodies beyond slabs.
    package let budget: BodyBudget
    /// Free slabs kept.
    private static let keptFree = 64

    /// A scratch buffer for heads.
    // Used by HTTP1Outlet.begin alone; what writes a head there begins no other message.
    @exclusivity(unchecked) package var headScratch: [UInt8] = []

    // Changed here alone, by code that calls no other code.
    @exclusivity(unchecked) private var free: [UnsafeMutableRawPointer] = []
    @exclusivity(unchecked) private var made = 0
    package var inUse: Int { made - free.count }

    package init(budget: BodyBudget = BodyBudget()) {
        self.budget = budget
        free.reserveCapacity(Self.keptFree)
        headScratch.reserveCapacity(4096)
    }

    deinit { releaseFree() }

    /// Returns free slabs to the allocator after a peak.
    package func releaseFree() {
        for slab in free { slab.deallocate() }
        made -= free.count
        free.removeAll(keepingCapacity: true)
    }

    func take() -> UnsafeMutableRawPointer {
        if let slab = free.popLast() { return slab }
        made += 1
        return .allocate(byteCount: Self.slabSize, alignment: 64)
    }

    func giveBack(_ slab: UnsafeMutableRawPointer) {
        if free.count < Self.keptFree { return free.append(slab) }
        made -= 1
        slab.deallocate()
    }
}
