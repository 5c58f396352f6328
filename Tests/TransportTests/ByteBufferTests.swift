import PinproxyTransport
import Testing

@Suite struct ByteBufferTests {
    private func filled(_ text: String, slabs: SlabPool) -> ByteBuffer {
        var buffer = ByteBuffer(slabs: slabs)
        Array(text.utf8).withUnsafeBytes { buffer.append(copying: $0) }
        return buffer
    }

    private func text(_ buffer: borrowing ByteBuffer) -> String { String(decoding: buffer.unread, as: UTF8.self) }

    @Test func holdsASlabOnlyWhileItHoldsBytes() {
        let slabs = SlabPool()
        var buffer = ByteBuffer(slabs: slabs)
        #expect(slabs.inUse == 0)
        Array("abc".utf8).withUnsafeBytes { buffer.append(copying: $0) }
        #expect(slabs.inUse == 1)
        buffer.consume(2)
        buffer.releaseIfEmpty()
        let left = text(buffer)
        #expect(slabs.inUse == 1 && left == "c")
        buffer.consume(1)
        buffer.releaseIfEmpty()
        #expect(slabs.inUse == 0 && buffer.isEmpty)
    }

    @Test func growsOnlyToTheLimit() {
        let slabs = SlabPool()
        var buffer = ByteBuffer(slabs: slabs)
        let limit = 200_000
        while buffer.makeRoom(limit: limit) {
            let tail = buffer.tail()
            tail.initializeMemory(as: UInt8.self, repeating: 1)
            buffer.append(tail.count)
        }
        #expect(buffer.count > limit - 1 && buffer.count <= limit + 16)
        #expect(slabs.inUse == 0)
        buffer.consume(buffer.count)
        buffer.releaseIfEmpty()
        let hasRoom = buffer.makeRoom(limit: limit)
        #expect(hasRoom)
    }

    @Test func movesOutWhole() {
        let slabs = SlabPool()
        var buffer = filled("abc", slabs: slabs)
        buffer.consume(1)
        let taken = buffer.take()
        let moved = text(taken)
        #expect(moved == "bc" && buffer.isEmpty)
        #expect(slabs.inUse == 1)
    }
}
