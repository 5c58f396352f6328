import Glibc
import Testing

@testable import PinproxyEventLoop

@Suite struct DescriptorRoomTests {
    @Test func aBlockIsMadeOnceAtTheFirstUseOfAnyNumberInIt() {
        var room = DescriptorRoom()
        #expect(room.need(for: 700) == 512..<768)
        #expect(room.need(for: 512) == nil)
        #expect(room.need(for: 767) == nil)
        #expect(room.need(for: 3) == 0..<256)
        #expect(room.need(for: 768) == 768..<1024)
        #expect(room.need(for: 255) == nil)
        #expect(room.need(for: -1) == nil)
    }

    @Test func numbersThatAreWatchedAlreadyOrClosedStayAsTheyAre() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        defer { pair.close() }
        let handler = ClosureHandler()
        let source = SocketSource(loop: loop, descriptor: pair.a, handler: handler)
        var heard: [UInt8] = []
        handler.ready = { _ in
            heard.append(receive(from: pair.a) ?? 0)
            loop.base.makeRoom(for: 0..<1024)
            if heard.count == 2 { loop.stop() } else { send(2, to: pair.b) }
        }
        source.wantsRead = true
        loop.base.makeRoom(for: 0..<1024)
        send(1, to: pair.b)
        run(loop)
        #expect(heard == [1, 2])
        // A number closed in the block works again for the next descriptor that gets it.
        let late = try SocketPair()
        defer { late.close() }
        let again = try EventLoop()
        again.base.makeRoom(for: 0..<1024)
        let lateHandler = ClosureHandler()
        let lateSource = SocketSource(loop: again, descriptor: late.a, handler: lateHandler)
        lateHandler.ready = { _ in again.stop() }
        lateSource.wantsRead = true
        send(1, to: late.b)
        run(again)
        #expect(receive(from: late.a) == 1)
    }
}
