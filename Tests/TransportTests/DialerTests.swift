import Glibc
import Testing

@testable import PinproxyEventLoop
@testable import PinproxyTransport

@Suite struct DialerTests {
    private static let hour: UInt64 = 3_600_000_000_000
    private static let millisecond: UInt64 = 1_000_000

    @Test(arguments: ["127.0.0.1", "::1"])
    func itConnectsAndTheSocketIsHandedOverOnce(host: String) throws {
        let listener = try Listener(host)
        let dialed = try Dial(to: [listener]).result.get()
        #expect(dialed.address == listener.address)
        guard let socket = dialed.take() else {
            Issue.record("there is no socket")
            return
        }
        #expect(SocketAddress { getpeername(socket.raw, $0, $1) } == listener.address)
        if dialed.take() != nil { Issue.record("the socket was handed over twice") }
    }

    @Test func aRefusalLeadsToTheNextAddressWithoutTheDelay() throws {
        let refusing = try RefusingPort()
        let listener = try Listener("127.0.0.1")
        // With a delay of an hour the watchdog would end it.
        let dialed = try Dial(to: [refusing, listener], delay: Self.hour).result.get()
        #expect(dialed.address == listener.address)
    }

    @Test func anAddressThatDoesntAnswerIsOvertakenAfterTheDelay() throws {
        let silent = try SilentPort()
        let listener = try Listener("::1")
        let dialed = try Dial(to: [silent, listener], delay: Self.millisecond).result.get()
        #expect(dialed.address == listener.address)
    }

    @Test func anEarlierAttemptMayStillWinAfterALaterOneHasFailed() throws {
        let silent = try SilentPort()
        let refusing = try RefusingPort()
        let dial = try Dial(
            to: [silent, refusing], delay: 0,
            started: { loop in
                // Makes space in the queue: the kernel repeats the SYN after a second.
                silent.drain()
            })
        #expect(try dial.result.get().address == silent.address)
    }

    @Test func whenAllFailTheErrorNamesEachAddressWithItsReason() throws {
        let first = try RefusingPort()
        let second = try RefusingPort()
        let unreachable = Unreachable(address: SocketAddress(ip: try #require(IPAddress("255.255.255.255")), port: 9))
        let result = try Dial(to: [first, unreachable, second], delay: Self.hour).result
        guard case .failure(let error) = result else {
            Issue.record("it connected")
            return
        }
        #expect(error.attempts.map(\.address) == [first.address, unreachable.address, second.address])
        #expect(error.attempts.map(\.error.code) == [ECONNREFUSED, error.attempts[1].error.code, ECONNREFUSED])
        #expect(error.description.hasPrefix("\(first.address): Connection refused; 255.255.255.255:9: "))
    }

    @Test func noAddressIsAnErrorToldAfterStartHasReturned() throws {
        let result = try Dial(to: []).result
        guard case .failure(let error) = result else {
            Issue.record("it connected")
            return
        }
        #expect(error.attempts.isEmpty)
        #expect(error.description == "no address to connect to")
    }

    @Test func cancelledOrLetGoItDoesntCompleteAndLetsItsCapturesGo() throws {
        final class Capture {}
        let loop = try EventLoop()
        let listener = try Listener("127.0.0.1")
        var dialers: [Dialer] = []
        for letsGo in [false, true] {
            weak var gone: Capture?
            do {
                let capture = Capture()
                gone = capture
                let dialer = Dialer(loop: loop, addresses: [listener.address]) { _ in
                    _ = capture
                    Issue.record("a cancelled dialer completed")
                }
                dialer.start()
                if !letsGo {
                    dialers.append(dialer)
                    dialer.cancel()
                }
            }
            #expect(gone == nil)
        }
        // Long enough for events that are ready by now to be delivered.
        loop.afterThisTurn { loop.afterThisTurn { loop.afterThisTurn { loop.stop() } } }
        withExtendedLifetime(dialers) { loop.run() }
    }

    @Test func itMayBeReleasedInItsCompletion() throws {
        let loop = try EventLoop()
        let listener = try Listener("127.0.0.1")
        var dialer: Dialer?
        dialer = Dialer(loop: loop, addresses: [listener.address]) { _ in
            dialer = nil
            loop.stop()
        }
        weak let gone = dialer
        dialer?.start()
        withExtendedLifetime(listener) { loop.run() }
        #expect(gone == nil)
    }

    @Test func neitherWinnersNorLosersLeaveADescriptorBehind() throws {
        let silent = try SilentPort()
        let refusing = try RefusingPort()
        let listener = try Listener("127.0.0.1")
        let before = openSockets()
        for _ in 0..<100 {
            let dialed = try Dial(
                to: [silent, refusing, listener], delay: 0
            ).result.get()
            #expect(dialed.address == listener.address)
            listener.drain()
        }
        // A leak would be at least 100; other tests open a few sockets meanwhile.
        #expect(openSockets() < before + 100)
    }
}

/// A destination for a dial. Its port is held open during the dial, which keeps other tests off it.
private protocol Target: AnyObject {
    var address: SocketAddress { get }
}

/// One dial, run to completion on its own loop.
private struct Dial {
    let result: Result<DialedSocket, DialError>

    init(
        to targets: [any Target], delay: UInt64 = 250_000_000, started: ((EventLoop) -> Void)? = nil
    ) throws {
        let loop = try EventLoop()
        var result: Result<DialedSocket, DialError>?
        var hasStarted = false
        let dialer = Dialer(loop: loop, addresses: targets.map(\.address), attemptDelayNanoseconds: delay) {
            #expect(hasStarted, "completed within start()")
            #expect(result == nil, "completed twice")
            result = $0
            loop.stop()
        }
        let watchdog = Deadline(loop: loop, owner: loop) {
            Issue.record("still dialing after a minute")
            $0.stop()
        }
        watchdog.set(afterNanoseconds: 60_000_000_000)
        loop.afterThisTurn {
            dialer.start()
            hasStarted = true
            started?(loop)
        }
        withExtendedLifetime((targets, dialer, watchdog)) { loop.run() }
        self.result = try #require(result)
    }
}

private final class Listener: Target {
    let address: SocketAddress
    private let socket: Descriptor

    init(_ host: String) throws {
        socket = try Socket.listen(
            on: SocketAddress(ip: try #require(IPAddress(host)), port: 0), backlog: 128, reusePort: false)
        address = try #require(Socket.localAddress(socket.raw))
    }

    func drain() {
        while case .accepted = Socket.accept(socket.raw) {}
    }
}

/// A port without a listener, which no other process can get.
private final class RefusingPort: Target {
    let address: SocketAddress
    private let socket: Descriptor

    init() throws {
        // Bound, but not listening.
        socket = Descriptor(owning: Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
        var local = sockaddr_in()
        local.sin_family = sa_family_t(AF_INET)
        local.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let raw = socket.raw
        let status = withUnsafePointer(to: &local) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0)
        address = try #require(Socket.localAddress(raw))
    }
}

/// A listener with a full queue: the kernel drops every SYN, as a dead host would.
private final class SilentPort: Target {
    let address: SocketAddress
    private let socket: Descriptor
    private let filling: Descriptor

    init() throws {
        socket = try Socket.listen(
            on: SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0), backlog: 0, reusePort: false)
        address = try #require(Socket.localAddress(socket.raw))
        // A backlog of 0 holds one connection.
        filling = try Socket.beginConnect(to: address)
        let raw = socket.raw
        var queued = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
        try #require(poll(&queued, 1, 60_000) == 1)
    }

    func drain() {
        while case .accepted = Socket.accept(socket.raw) {}
    }
}

private final class Unreachable: Target {
    let address: SocketAddress

    init(address: SocketAddress) {
        self.address = address
    }
}

private func openSockets() -> Int {
    (0..<4096).count { descriptor in
        var status = stat()
        return fstat(CInt(descriptor), &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
}
