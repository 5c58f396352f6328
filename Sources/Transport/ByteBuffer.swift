import Glibc

/// Received bytes in transit between streams, contiguous.
///
/// ```
///     written      unread        free
///   |-----------|-----------|------------|
///   0         start        end       capacity
/// ```
/// The memory comes from a ``SlabPool`` on the first write and returns with ``releaseIfEmpty()``. It grows for a head
/// larger than a slab, up to the caller's limit.
package struct ByteBuffer: ~Copyable {
    package let slabs: SlabPool
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0
    package private(set) var start = 0
    package private(set) var end = 0

    package init(slabs: SlabPool) {
        self.slabs = slabs
    }

    deinit {
        giveBack(base, capacity)
    }

    package var count: Int { end - start }
    package var isEmpty: Bool { start == end }
    /// Bytes that can be appended without growing.
    package var free: Int { base == nil ? SlabPool.slabSize : capacity - end }

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

    /// Borrows the unread bytes, also of an object's property.
    @inline(__always) package func withUnread<Result>(_ body: (Span<UInt8>) -> Result) -> Result { body(span) }

    package func withFront<Result, Failure>(
        _ count: Int, _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(span.bytes.extracting(first: count))
    }

    /// Borrows the unread bytes from `offset` on, for changes in place.
    package mutating func edit<Result>(from offset: Int, _ body: (inout MutableSpan<UInt8>) -> Result) -> Result {
        precondition(offset >= 0 && offset <= count)
        let bytes = UnsafeMutableRawBufferPointer(
            start: base.map { $0 + start + offset }, count: base == nil ? 0 : count - offset)
        var span = unsafe MutableSpan<UInt8>(_unsafeBytes: bytes)
        return body(&span)
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
        if capacity - end < bytes.count { compact() }
        if capacity - end < bytes.count { grow(to: max(end + bytes.count, 2 * capacity)) }
        memcpy(memory() + end, source, bytes.count)
        end += bytes.count
    }

    package mutating func append(_ text: StaticString) {
        append(copying: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package mutating func append(copying bytes: RawSpan) { bytes.withUnsafeBytes { append(copying: $0) } }

    /// Drops `count` bytes at the front.
    @inline(__always) package mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= end - start)
        start += count
    }

    /// Removes `count` unread bytes, `offset` bytes past the first.
    package mutating func remove(_ count: Int, at offset: Int) {
        precondition(count >= 0 && offset >= 0 && offset + count <= end - start)
        guard let base, count > 0 else { return }
        let gap = base + start + offset
        memmove(gap, gap + count, end - start - offset - count)
        end -= count
    }

    /// Forgets the consumed bytes, and moves the unread ones to the front where that gains room.
    package mutating func compact() {
        guard let base, start > 0 else { return }
        let count = end - start
        if count > 0 { memmove(base, base + start, count) }
        start = 0
        end = count
    }

    /// Doubles a full slab up to `limit` unread bytes. False: the limit is reached.
    package mutating func makeRoom(limit: Int) -> Bool {
        if free > 0 { return true }
        compact()
        if free > 0 { return true }
        guard count < limit else { return false }
        grow(to: min(capacity * 2, limit + 1))
        return true
    }

    /// Moves everything into a separate buffer.
    package mutating func take() -> ByteBuffer {
        var taken = ByteBuffer(slabs: slabs)
        swap(&taken, &self)
        return taken
    }

    /// Releases the memory if nothing is unread.
    @inline(__always) package mutating func releaseIfEmpty() {
        if start == end, base != nil { release() }
    }

    private mutating func release() {
        giveBack(base, capacity)
        base = nil
        capacity = 0
        start = 0
        end = 0
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
