import Glibc

/// Received bytes on their way from one stream to another, in one contiguous piece.
///
/// ```
///     headroom     written     unread        free
///   |-----------|-----------|-----------|------------|
///   0                     start        end       capacity
/// ```
/// The memory comes from a ``SlabPool`` on the first write and goes back with ``releaseIfEmpty()``.
/// It grows for a head that doesn't fit into a slab, up to the caller's limit, and for a body that is kept, as far as
/// the pool's ``BodyBudget`` has room.
package struct ByteBuffer: ~Copyable {
    /// Kept free in front of received bytes, so that a head that grew by a few fields can be put
    /// back before its body without moving the body.
    package static let headroom = 512
    /// Kept free after received bytes, for the CRLF that ends a chunk made of them.
    private static let footroom = 8

    private let slabs: SlabPool
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0
    /// Of a body that is kept here. It goes with the memory.
    private var reservation: BodyReservation?
    /// Offset of the first unread byte.
    package private(set) var start = ByteBuffer.headroom
    /// Offset past the last unread byte.
    package private(set) var end = ByteBuffer.headroom

    package init(slabs: SlabPool) {
        self.slabs = slabs
    }

    deinit {
        giveBack(base, capacity)
    }

    package var count: Int { end - start }
    package var isEmpty: Bool { start == end }
    /// Bytes that can be appended without growing.
    package var free: Int { max(0, (base == nil ? SlabPool.slabSize - ByteBuffer.headroom : capacity - end) - ByteBuffer.footroom) }

    /// The unread bytes. Valid until the next mutation.
    package var unread: UnsafeRawBufferPointer {
        guard let base else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: base + start, count: end - start)
    }

    /// The unread bytes, which can't be used once the buffer has changed.
    package var span: Span<UInt8> {
        @_lifetime(borrow self)
        get { unsafe _overrideLifetime(Span(_unsafeBytes: unread), borrowing: self) }
    }

    /// The unread bytes from `offset` on, to be changed in place. Valid until the next mutation.
    package func unreadMutable(from offset: Int) -> UnsafeMutableRawBufferPointer {
        guard let base else { return UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        return UnsafeMutableRawBufferPointer(start: base + start + offset, count: end - start - offset)
    }

    /// The free space after the unread bytes. Valid until the next mutation.
    package mutating func tail() -> UnsafeMutableRawBufferPointer {
        let base = memory()
        return UnsafeMutableRawBufferPointer(start: base + end, count: free)
    }

    /// `count` bytes were written into ``tail()``.
    package mutating func append(_ count: Int) {
        precondition(count >= 0 && count <= capacity - end)
        end += count
    }

    package mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append(copying: $0) }
    }

    package mutating func append(copying bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        _ = memory()
        if capacity - end < bytes.count { grow(to: end + bytes.count + ByteBuffer.footroom) }
        memcpy(memory() + end, source, bytes.count)
        end += bytes.count
    }

    /// Puts a few bytes in front of the unread ones, at most the headroom.
    package mutating func prepend(copying bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count <= start)
        guard let source = bytes.baseAddress else { return }
        start -= bytes.count
        memcpy(memory() + start, source, bytes.count)
    }

    /// `count` bytes from the front have been used.
    package mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= end - start)
        start += count
    }

    /// Takes `count` unread bytes away, `offset` bytes past the first; those after them close the gap.
    package mutating func remove(_ count: Int, at offset: Int) {
        precondition(count >= 0 && offset >= 0 && offset + count <= end - start)
        guard let base, count > 0 else { return }
        let gap = base + start + offset
        memmove(gap, gap + count, end - start - offset - count)
        end -= count
    }

    /// Makes `count` consumed bytes unread again: a request that is sent once more.
    package mutating func rewind(_ count: Int) {
        precondition(count >= 0 && count <= start)
        start -= count
    }

    /// Forgets the consumed bytes, and moves the unread ones to the front where that gains room.
    package mutating func compact() {
        guard let base, start > ByteBuffer.headroom else { return }
        let count = end - start
        if count > 0 { memmove(base + ByteBuffer.headroom, base + start, count) }
        start = ByteBuffer.headroom
        end = start + count
    }

    /// Puts `bytes` in the place of the first `length` unread bytes; what follows stays where it is
    /// unless the headroom is too small.
    package mutating func replaceFront(_ length: Int, with bytes: UnsafeRawBufferPointer) {
        precondition(length <= end - start)
        if bytes.count > start + length {
            let shift = bytes.count - (start + length)
            if capacity - end < shift { grow(to: end + shift + ByteBuffer.footroom) }
            guard let base else { return }
            memmove(base + start + length + shift, base + start + length, end - start - length)
            end += shift
            start += shift
        }
        guard let source = bytes.baseAddress else { return consume(length) }
        start += length - bytes.count
        memcpy(memory() + start, source, bytes.count)
    }

    /// Room for more when a slab is full, doubling up to `limit` unread bytes. False: the limit is reached.
    package mutating func makeRoom(limit: Int) -> Bool {
        if free > 0 { return true }
        compact()
        if free > 0 { return true }
        guard count < limit else { return false }
        grow(to: min(capacity * 2, limit + ByteBuffer.headroom + ByteBuffer.footroom + 1))
        return true
    }

    /// Room for more after the unread bytes where those in front of them are still needed, doubling up to `limit` bytes
    /// of both. False: the limit is reached, or the budget is spent.
    package mutating func makeRoomKeepingConsumed(limit: Int) -> Bool {
        if free > 0 { return true }
        let wanted = min(capacity * 2, limit + ByteBuffer.headroom + ByteBuffer.footroom)
        guard wanted > capacity else { return false }
        let reservation = reservation ?? BodyReservation(of: slabs.budget, for: .replay)
        guard reservation.grow(to: wanted) else { return false }
        self.reservation = reservation
        grow(to: wanted)
        return true
    }

    /// Holds the reservation of a body that was put here, until the memory is given back.
    package mutating func hold(_ reservation: BodyReservation) {
        guard let own = self.reservation else { return self.reservation = reservation }
        own.absorb(reservation)
    }

    /// The last `count` bytes that were consumed, if nothing has moved since. Valid until the next mutation.
    package func consumed(last count: Int) -> UnsafeRawBufferPointer {
        precondition(count >= 0 && count <= start)
        guard let base else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: base + start - count, count: count)
    }

    /// Moves all out into a buffer of its own.
    package mutating func take() -> ByteBuffer {
        var taken = ByteBuffer(slabs: slabs)
        swap(&taken, &self)
        return taken
    }

    /// Gives the memory back if nothing is unread.
    package mutating func releaseIfEmpty() {
        guard start == end else { return }
        giveBack(base, capacity)
        base = nil
        capacity = 0
        reservation = nil
        start = ByteBuffer.headroom
        end = start
    }

    private mutating func memory() -> UnsafeMutableRawPointer {
        if let base { return base }
        let fresh = slabs.take()
        base = fresh
        capacity = SlabPool.slabSize
        return fresh
    }

    private mutating func grow(to wanted: Int) {
        let old = memory()
        guard wanted > capacity else { return }
        let larger = UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 64)
        memcpy(larger, old, end)
        giveBack(old, capacity)
        base = larger
        capacity = wanted
    }

    private func giveBack(_ memory: UnsafeMutableRawPointer?, _ capacity: Int) {
        guard let memory else { return }
        if capacity == SlabPool.slabSize { slabs.giveBack(memory) } else { memory.deallocate() }
    }
}
