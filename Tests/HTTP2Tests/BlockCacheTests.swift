import CPinproxyNGHTTP2
import Glibc
import PinproxyHTTPWire
import Testing

@testable import PinproxyHTTP2

/// The memory for an nghttp2 session.
@Suite(.enabled(if: BlockCache.limit > 0, "the address sanitizer looks at freed memory"))
struct BlockCacheTests {
    @Test(arguments: [1, 24, 25, 100, 504])
    func aFreedBlockServesTheNextOfItsSize(_ size: Int) throws {
        let cache = BlockCache()
        let memory = cache.functions
        let first = try #require(memory.malloc(size, memory.mem_user_data))
        // malloc gives more than was asked for if too little of a block would remain.
        let usable = malloc_usable_size(first)
        memory.free(first, memory.mem_user_data)
        #expect(cache.kept >= size)
        let second = memory.malloc(usable, memory.mem_user_data)
        #expect(second == first)
        #expect(cache.kept == 0)
        memory.free(second, memory.mem_user_data)
    }

    @Test func aBlockHasTheSizeThatWasAskedFor() throws {
        let cache = BlockCache()
        let memory = cache.functions
        for size in 0...600 {
            let block = try #require(memory.malloc(size, memory.mem_user_data))
            memory.free(block, memory.mem_user_data)
        }
        // Again, from the cache: each block is written to its full size.
        let blocks = try (0...600).map { size in
            let block = try #require(memory.malloc(size, memory.mem_user_data))
            #expect(malloc_usable_size(block) >= size)
            block.initializeMemory(as: UInt8.self, repeating: UInt8(truncatingIfNeeded: size), count: size)
            return block
        }
        for (size, block) in blocks.enumerated() {
            let bytes = UnsafeRawBufferPointer(start: block, count: size)
            #expect(bytes.allSatisfy { $0 == UInt8(truncatingIfNeeded: size) })
            memory.free(block, memory.mem_user_data)
        }
    }

    @Test func whatIsAskedForZeroedIsZero() throws {
        let cache = BlockCache()
        let memory = cache.functions
        let used = try #require(memory.malloc(120, memory.mem_user_data))
        used.initializeMemory(as: UInt8.self, repeating: 0xFF, count: 120)
        memory.free(used, memory.mem_user_data)
        let zeroed = try #require(memory.calloc(12, 10, memory.mem_user_data))
        #expect(zeroed == used)
        #expect(UnsafeRawBufferPointer(start: zeroed, count: 120).allSatisfy { $0 == 0 })
        memory.free(zeroed, memory.mem_user_data)
        #expect(memory.calloc(.max, 2, memory.mem_user_data) == nil)
    }

    @Test func keepsNoMoreThanItsLimit() throws {
        let cache = BlockCache()
        let memory = cache.functions
        let blocks = (0..<1000).compactMap { _ in memory.malloc(400, memory.mem_user_data) }
        #expect(blocks.count == 1000)
        for block in blocks { memory.free(block, memory.mem_user_data) }
        #expect(cache.kept > BlockCache.limit - 504 && cache.kept <= BlockCache.limit)
        cache.trim()
        #expect(cache.kept == 0)
    }

    @Test func aLargeBlockIsNotKept() throws {
        let cache = BlockCache()
        let memory = cache.functions
        let block = try #require(memory.malloc(4096, memory.mem_user_data))
        let grown = try #require(memory.realloc(block, 8192, memory.mem_user_data))
        memory.free(grown, memory.mem_user_data)
        memory.free(nil, memory.mem_user_data)
        #expect(cache.kept == 0)
    }

    @Test func anIdleSessionKeepsNothing() throws {
        let pair = try Pair()
        for _ in 0..<3 {
            let stream = try #require(pair.client.session.submitRequest(request(), hasBody: false))
            pair.exchange()
            pair.server.session.submitResponse(stream, response(), hasBody: false)
            pair.exchange()
        }
        for side in [pair.client, pair.server] {
            #expect(side.session.handle.cache.kept > 0)
            side.session.trim()
            #expect(side.session.handle.cache.kept == 0)
        }
        // Streams still open and close after that.
        let stream = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.server.session.submitResponse(stream, response(), hasBody: false)
        pair.exchange()
        #expect(pair.events.client.last == .head(7, "HTTP/1.1 200 \r\n\r\n", ends: true, body: .known(0)))
    }
}
