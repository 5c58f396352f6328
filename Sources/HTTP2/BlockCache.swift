import CPinproxyNGHTTP2
import Glibc

/// The memory of one session of nghttp2, which has to be deleted first.
///
/// nghttp2 allocates some thirty small blocks for an exchange and frees as many. Those that are freed are kept for the
/// next, up to ``limit``: malloc's own cache of a thread has seven of a size, and the streams of one read need more.
struct BlockCache: ~Copyable {
    /// Bytes kept of a session in use. An idle session keeps none (``trim()``). None under the address sanitizer, which
    /// then sees what nghttp2 does with memory that it has freed.
    static let limit = dlsym(nil, "__asan_init") == nil ? 64 << 10 : 0

    private let lists: UnsafeMutablePointer<FreeLists>

    init() {
        lists = .allocate(capacity: 1)
        lists.initialize(to: FreeLists())
    }

    deinit {
        lists.pointee.release()
        lists.deallocate()
    }

    /// Bytes that are kept.
    var kept: Int { lists.pointee.kept }

    func trim() { lists.pointee.release() }

    /// nghttp2 copies it.
    var functions: nghttp2_mem {
        nghttp2_mem(
            mem_user_data: lists,
            malloc: { size, lists in FreeLists.at(lists)?.pointee.allocate(size) },
            free: { block, lists in FreeLists.at(lists)?.pointee.free(block) },
            calloc: { count, size, lists in FreeLists.at(lists)?.pointee.allocateZeroed(count, size) },
            realloc: { block, size, lists in FreeLists.at(lists)?.pointee.reallocate(block, size) })
    }
}

/// A list of free blocks for each size of block, 24 to 504 bytes in steps of 16, which are the sizes of malloc. The
/// first word of a free block points to the next.
private struct FreeLists {
    private static let least = 24
    private static let step = 16
    private static let count = 31

    private var heads: [31 of UnsafeMutableRawPointer?] = .init(repeating: nil)
    /// Bytes in the lists.
    private(set) var kept = 0
    private let limit = BlockCache.limit

    static func at(_ user: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<FreeLists>? {
        user?.assumingMemoryBound(to: FreeLists.self)
    }

    @inline(__always)
    mutating func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
        // Blocks of a list have at least its size.
        let list = size <= Self.least ? 0 : (size - Self.least + Self.step - 1) / Self.step
        guard list < Self.count, let block = heads[list] else { return malloc(size) }
        heads[list] = block.load(as: UnsafeMutableRawPointer?.self)
        kept -= Self.size(of: list)
        return block
    }

    mutating func allocateZeroed(_ count: Int, _ size: Int) -> UnsafeMutableRawPointer? {
        let (bytes, overflows) = count.multipliedReportingOverflow(by: size)
        guard !overflows, bytes <= Self.size(of: Self.count - 1) else { return calloc(count, size) }
        guard let block = allocate(bytes) else { return nil }
        memset(block, 0, bytes)
        return block
    }

    mutating func reallocate(_ block: UnsafeMutableRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
        guard let block else { return allocate(size) }
        return realloc(block, size)
    }

    mutating func free(_ block: UnsafeMutableRawPointer?) {
        guard let block else { return }
        let usable = malloc_usable_size(block)
        let list = (usable - Self.least) / Self.step
        guard usable >= Self.least, list < Self.count, kept + Self.size(of: list) <= limit else {
            return Glibc.free(block)
        }
        block.storeBytes(of: heads[list], as: UnsafeMutableRawPointer?.self)
        heads[list] = block
        kept += Self.size(of: list)
    }

    mutating func release() {
        for list in 0..<Self.count {
            while let block = heads[list] {
                heads[list] = block.load(as: UnsafeMutableRawPointer?.self)
                Glibc.free(block)
            }
        }
        kept = 0
    }

    private static func size(of list: Int) -> Int { least + list * step }
}
