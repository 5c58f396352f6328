import Glibc
import Testing

@testable import PinproxyEventLoop

@Suite struct SocketTests {
    @Test(arguments: ["127.0.0.1", "::1"])
    func aConnectionIsAcceptedWithTheRightAddressesAndOptions(host: String) throws {
        let any = SocketAddress(ip: try #require(IPAddress(host)), port: 0)
        let listener = try Socket.listen(on: any, backlog: 8, reusePort: false)
        let address = try #require(Socket.localAddress(listener.raw))
        #expect(address.ip == any.ip && address.port != 0)
        guard case .wouldBlock = Socket.accept(listener.raw) else {
            Issue.record("accepted a connection that nobody made")
            return
        }
        let client = try Socket.beginConnect(to: address)
        let loop = try EventLoop()
        wait(loop, for: listener.raw, .read)
        guard case .accepted(let server, let peer) = Socket.accept(listener.raw) else {
            Issue.record("nothing was accepted")
            return
        }
        #expect(peer == Socket.localAddress(client.raw))
        #expect(SocketAddress { getpeername(client.raw, $0, $1) } == address)
        #expect(Socket.pendingError(client.raw) == 0)
        for descriptor in [client.raw, server.raw] {
            #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            var noDelay: CInt = 0
            var length = socklen_t(MemoryLayout<CInt>.size)
            #expect(getsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &noDelay, &length) == 0)
            #expect(noDelay != 0)
        }
    }

    @Test func aRefusedConnectionLeavesItsErrorOnTheSocketOnce() throws {
        // Bound, which keeps others off the port, but not listening.
        let holder = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { _ = close(holder) }
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        try #require(any.withSockaddr { bind(holder, $0, $1) } == 0)
        let client = try Socket.beginConnect(to: try #require(Socket.localAddress(holder)))
        let loop = try EventLoop()
        wait(loop, for: client.raw, .write)
        #expect(Socket.pendingError(client.raw) == ECONNREFUSED)
        #expect(Socket.pendingError(client.raw) == 0)
    }

    @Test func aPortThatIsTakenSaysSoSharedBySOREUSEPORTItIsNot() throws {
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        let first = try Socket.listen(on: any, backlog: 8, reusePort: true)
        let address = try #require(Socket.localAddress(first.raw))
        let second = try Socket.listen(on: address, backlog: 8, reusePort: true)
        #expect(Socket.localAddress(second.raw) == address)
        do {
            let third = try Socket.listen(on: address, backlog: 8, reusePort: false)
            Issue.record("listens at \(third.raw)")
        } catch {
            #expect(error == SystemError(code: EADDRINUSE, call: "bind"))
            #expect(error.description == "bind: Address already in use")
        }
    }

    @Test func bothFamiliesCanListenOnTheSamePort() throws {
        let six = try Socket.listen(on: .init(ip: try #require(IPAddress("::")), port: 0), backlog: 8, reusePort: false)
        let port = try #require(Socket.localAddress(six.raw)).port
        // This only checks that the IPv6 socket doesn't claim IPv4; another process may have that port.
        var only: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        #expect(getsockopt(six.raw, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &only, &length) == 0)
        #expect(only == 1 && port != 0)
    }

    @Test func aDescriptorIsClosedWithItsOwnerUnlessItWasReleased() throws {
        let pair = try SocketPair()
        do { _ = Descriptor(owning: pair.a) }
        var byte: UInt8 = 0
        #expect(read(pair.b, &byte, 1) == 0, "the other end is closed")
        let raw = Descriptor(owning: pair.b).release()
        #expect(fcntl(raw, F_GETFD) >= 0)
        _ = close(raw)
    }

    private func wait(_ loop: EventLoop, for descriptor: CInt, _ readiness: Readiness) {
        let handler = ClosureHandler { _ in loop.stop() }
        let source = SocketSource(loop: loop, descriptor: descriptor, handler: handler)
        source.wantsRead = readiness.contains(.read)
        source.wantsWrite = readiness.contains(.write)
        run(loop)
        source.invalidate()
    }
}
