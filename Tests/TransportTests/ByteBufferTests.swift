import Testing
import Transport

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

    @Test(arguments: ["", "x", "a head of the same size", String(repeating: "long ", count: 400)])
    func replacesTheFrontAndKeepsWhatFollows(_ head: String) {
        let slabs = SlabPool()
        var buffer = filled("a head of the same sizeBODY", slabs: slabs)
        Array(head.utf8).withUnsafeBytes { buffer.replaceFront(23, with: $0) }
        let left = text(buffer)
        #expect(left == head + "BODY")
    }

    @Test func replacesTheFrontOfAFullSlab() {
        let slabs = SlabPool()
        var buffer = ByteBuffer(slabs: slabs)
        let body = [UInt8](repeating: 7, count: buffer.free)
        body.withUnsafeBytes { buffer.append(copying: $0) }
        #expect(buffer.free == 0)
        let head = [UInt8](repeating: 8, count: 5000)
        head.withUnsafeBytes { buffer.replaceFront(10, with: $0) }
        let left = Array(buffer.unread)
        #expect(left == head + body.dropFirst(10))
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

    @Test func rewindsWhatWasConsumed() {
        let slabs = SlabPool()
        var buffer = filled("GET / rest", slabs: slabs)
        buffer.consume(6)
        buffer.rewind(6)
        let left = text(buffer)
        #expect(left == "GET / rest")
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

    @Test func prependsIntoTheHeadroom() {
        let slabs = SlabPool()
        var buffer = filled("data", slabs: slabs)
        Array("4\r\n".utf8).withUnsafeBytes { buffer.prepend(copying: $0) }
        Array("\r\n".utf8).withUnsafeBytes { buffer.append(copying: $0) }
        let left = text(buffer)
        #expect(left == "4\r\ndata\r\n")
    }
}
