/// A reusable byte buffer. Appending a field line checks the capacity once.
struct ByteArena: ~Copyable {
    private var base: UnsafeMutablePointer<UInt8>
    private var capacity = 0
    private(set) var count = 0

    private static let least = 128

    init() { base = .allocate(capacity: 0) }

    deinit { base.deallocate() }

    var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: base, count: count) }

    mutating func clear() { count = 0 }
    mutating func truncate(to count: Int) { self.count = count }

    mutating func removeFirst(_ dropped: Int) {
        count -= dropped
        base.update(from: base + dropped, count: count)
    }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        reserve(bytes.count)
        write(bytes)
    }

    mutating func append(_ text: StaticString) {
        append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func append(_ byte: UInt8) {
        reserve(1)
        put(byte)
    }

    /// Appends a field line of HTTP/1.1.
    mutating func appendLine(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        reserve(name.count + value.count + 4)
        write(name)
        put(UInt8(ascii: ":"))
        put(0x20)
        write(value)
        put(0x0D)
        put(0x0A)
    }

    private mutating func reserve(_ more: Int) {
        guard count + more > capacity else { return }
        capacity = max(2 * capacity, count + more, Self.least)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.update(from: base, count: count)
        base.deallocate()
        base = larger
    }

    private mutating func write(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress else { return }
        (base + count).update(from: start, count: bytes.count)
        count += bytes.count
    }

    private mutating func put(_ byte: UInt8) {
        base[count] = byte
        count += 1
    }
}
