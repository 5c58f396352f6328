/// The memory that a worker's connections read into, a slab each while bytes pass through, on one thread.
package final class SlabPool {
    /// Bytes of one slab: four full TLS records, and a head in front of them.
    package static let slabSize = (64 << 10) + 1024
    /// What is kept of bodies beyond slabs is drawn from it.
    package let budget: BodyBudget
    /// How many free slabs are kept; those beyond go back to the allocator.
    private static let keptFree = 64

    /// Where heads are written before they are put into a buffer.
    // Used by HTTP1Outlet.begin alone, and what writes a head there begins no other message.
    @exclusivity(unchecked) package var headScratch: [UInt8] = []

    // Both are changed here alone, by code that calls nobody.
    @exclusivity(unchecked) private var free: [UnsafeMutableRawPointer] = []
    @exclusivity(unchecked) private var made = 0
    package var inUse: Int { made - free.count }

    /// - Parameter budget: the process's, where several pools share one.
    package init(budget: BodyBudget = BodyBudget()) {
        self.budget = budget
        free.reserveCapacity(Self.keptFree)
        headScratch.reserveCapacity(4096)
    }

    deinit { releaseFree() }

    /// Gives back to the allocator what nobody holds, after a peak.
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
