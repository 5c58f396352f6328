import Glibc
import Testing

@testable import PinproxyEventLoop

@Suite struct SocketSourceTests {
    @Test func readinessIsLevelTriggeredItComesUntilItIsReadOrNoLongerWanted() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        defer { pair.close() }
        var calls = 0
        let handler = ClosureHandler()
        let source = SocketSource(loop: loop, descriptor: pair.a, handler: handler)
        handler.ready = { readiness in
            #expect(readiness == .read)
            calls += 1
            if calls == 3 {
                source.wantsRead = false
                settleThenStop(loop)
            }
        }
        source.wantsRead = true
        send(7, to: pair.b)
        run(loop)
        #expect(calls == 3)
        #expect(receive(from: pair.a) == 7)
    }

    @Test func interestCanBeSwitchedInAnyOrderWithinATurn() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        defer { pair.close() }
        var seen: Readiness = []
        let handler = ClosureHandler { seen.formUnion($0) }
        let source = SocketSource(loop: loop, descriptor: pair.a, handler: handler)
        handler.ready = { readiness in
            seen.formUnion(readiness)
            source.wantsRead = true
            source.wantsRead = false
            source.wantsWrite = false
            source.wantsRead = false
            source.wantsRead = true
            if readiness == .read { loop.stop() }
        }
        source.wantsWrite = true
        source.wantsWrite = true
        #expect(source.wantsWrite && !source.wantsRead)
        send(1, to: pair.b)
        run(loop)
        #expect(seen == [.read, .write])
    }

    @Test func aSourceMayBeReleasedAndItsDescriptorClosedInItsOwnCallback() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        final class Owner: SocketHandler {
            var source: SocketSource?
            var calls = 0
            func socketReady(_ readiness: Readiness) {
                calls += 1
                source = nil
            }
        }
        let owner = Owner()
        // Both are ready: after the first callback the second, already noted by libevent, must not come.
        owner.source = SocketSource(loop: loop, descriptor: pair.a, handler: owner)
        weak let gone = owner.source
        owner.source?.wantsRead = true
        owner.source?.wantsWrite = true
        send(1, to: pair.b)
        settle(loop)
        #expect(owner.calls == 1)
        #expect(gone == nil)
        pair.close()
    }

    @Test func aHandlerMayReleaseItselfWithItsSourceInItsCallback() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        defer { pair.close() }
        final class Holder: SocketHandler {
            private(set) var source: SocketSource?
            var release: () -> Void = {}
            init(_ loop: EventLoop, _ descriptor: CInt) {
                source = SocketSource(loop: loop, descriptor: descriptor, handler: self)
                source?.wantsWrite = true
            }
            func socketReady(_ readiness: Readiness) {
                release()
            }
        }
        var holder: Holder? = Holder(loop, pair.a)
        weak let gone = holder
        var calls = 0
        holder?.release = {
            calls += 1
            holder = nil
        }
        settle(loop)
        #expect(calls == 1)
        #expect(gone == nil)
    }

    @Test func oneSocketMayEndAnotherInTheSameTurn() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        defer { pair.close() }
        var calls = 0
        var sources: [SocketSource] = []
        let handler = ClosureHandler { _ in
            calls += 1
            for source in sources { source.invalidate() }
        }
        sources = [pair.a, pair.b].map { SocketSource(loop: loop, descriptor: $0, handler: handler) }
        for source in sources { source.wantsWrite = true }
        settle(loop)
        #expect(calls == 1)
        sources[0].wantsRead = true
        #expect(!sources[0].wantsRead, "an invalidated source wants nothing any more")
    }

    @Test(arguments: [Readiness.read, .write], [true, false])
    func aNumberThatIsClosedAndOpenedAnewInOneTurnIsHeardUnderItsNewOwner(
        readiness: Readiness, invalidates: Bool
    ) throws {
        let loop = try EventLoop()
        let first = try SocketPair()
        let second = try SocketPair()
        func want(_ source: SocketSource?) {
            source?.wantsRead = readiness == .read
            source?.wantsWrite = readiness == .write
        }
        var heard = 0
        let handler = ClosureHandler()
        let newHandler = ClosureHandler {
            #expect($0 == readiness)
            heard += 1
            loop.stop()
        }
        var source: SocketSource? = SocketSource(loop: loop, descriptor: first.a, handler: handler)
        var newSource: SocketSource?
        handler.ready = { _ in
            // Releasing it is enough, even while its callback is on the stack.
            if invalidates { source?.invalidate() }
            source = nil
            // The same number for another socket: in one step, or a concurrent test might take the number.
            #expect(dup2(second.a, first.a) == first.a)
            _ = close(second.a)
            newSource = SocketSource(loop: loop, descriptor: first.a, handler: newHandler)
            want(newSource)
            send(1, to: second.b)
        }
        want(source)
        send(1, to: first.b)
        run(loop)
        #expect(heard == 1)
        newSource?.invalidate()
        first.close()
        _ = close(second.b)
    }

    @Test func aClosedPeerIsReadReadiness() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        var seen: [Readiness] = []
        let handler = ClosureHandler {
            seen.append($0)
            loop.stop()
        }
        let source = SocketSource(loop: loop, descriptor: pair.a, handler: handler)
        source.wantsRead = true
        _ = close(pair.b)
        run(loop)
        #expect(seen == [.read])
        #expect(receive(from: pair.a) == nil)
        source.invalidate()
        _ = close(pair.a)
    }
}

private func settleThenStop(_ loop: EventLoop) {
    loop.afterThisTurn { loop.afterThisTurn { loop.afterThisTurn { loop.stop() } } }
}
