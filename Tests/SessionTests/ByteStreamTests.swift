import Glibc
import PinproxyEventLoop
import PinproxyTLS
import PinproxyTestAuthority
import PinproxyTransport
import Testing

/// The stream is driven by hand: the test makes the calls that readiness would make.
@Suite struct ByteStreamTests {
    /// A client stream to a TLS server that the test plays.
    private final class Secured: ByteStreamOwner {
        let wires: Wires
        var server: TLSConnection
        private(set) var result: Result<Void, StreamError>?
        var stream: ByteStream { wires.source }

        init() throws {
            let authority = try OriginAuthority.shared.get()
            wires = try Wires()
            server = try TLSConnection(
                server: OriginAuthority.context(), descriptor: wires.from, identity: authority.identity,
                ticketContext: [1])
            stream.owner = self
            let client = try stream.withDescriptor {
                try TLSConnection(
                    client: TLSClientContext(), descriptor: $0, serverName: .dns("api.test"), verify: { _ in .accept })
            }
            stream.secure(client)
            for _ in 0..<10 where result == nil {
                _ = server.handshake()
                stream.socketReady(.read)
            }
            _ = server.handshake()
            try #require(result).get()
        }

        func say(_ bytes: [UInt8]) {
            var sent = 0
            while sent < bytes.count {
                guard case .complete(let count) = bytes[sent...].withUnsafeBytes({ server.write($0) }) else {
                    Issue.record("the server couldn't write")
                    return
                }
                sent += count
            }
        }

        func streamIsReadable(_ stream: ByteStream) {}
        func streamIsWritable(_ stream: ByteStream) {}
        func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) { self.result = result }
    }

    private func isReadable(_ stream: ByteStream) -> Bool {
        stream.withDescriptor { descriptor in
            var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&wait, 1, 0) == 1
        }
    }

    @Test(arguments: [1, 16_384, 65_536, 200_000])
    func noByteWaitsWhereNoEventWillTellOfIt(count: Int) throws {
        let secured = try Secured()
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        secured.say(bytes)
        var received: [UInt8] = []
        var buffer = ByteBuffer(slabs: secured.wires.slabs)
        while received.count < count {
            try #require(secured.stream.holdsBytes || isReadable(secured.stream), "stuck at \(received.count)")
            if case .failed(let error) = secured.stream.read(into: &buffer) { throw error }
            received += Array(buffer.unread)
            buffer.consume(buffer.count)
            buffer.compact()
        }
        #expect(received == bytes)
    }

    @Test func closeNotifyTogetherWithTheLastBytesIsToldWithoutAnotherEvent() throws {
        let secured = try Secured()
        secured.say(Array("last".utf8))
        _ = secured.server.shutdown()
        var buffer = ByteBuffer(slabs: secured.wires.slabs)
        var isEnded = false
        while !isEnded {
            try #require(secured.stream.holdsBytes || isReadable(secured.stream))
            if case .ended = secured.stream.read(into: &buffer) { isEnded = true }
        }
        #expect(Array(buffer.unread) == Array("last".utf8))
    }

    @Test func anEndWithoutCloseNotifyIsAFailure() throws {
        let secured = try Secured()
        secured.wires.endSource()
        var buffer = ByteBuffer(slabs: secured.wires.slabs)
        var outcome = secured.stream.read(into: &buffer)
        // The first read may take the session tickets.
        if case .blocked = outcome { outcome = secured.stream.read(into: &buffer) }
        guard case .failed(.tls) = outcome else { throw Unexpected(text: "\(outcome)") }
    }

    @Test func aSideThatHasEndedStillReads() throws {
        let wires = try Wires()
        wires.source.endWriting()
        #expect(isClosed(wires.from))
        wires.send(Array("late".utf8))
        var buffer = ByteBuffer(slabs: wires.slabs)
        guard case .received(4) = wires.source.read(into: &buffer) else { throw Unexpected(text: "nothing") }
    }

    @Test func anAbortIsAResetForThePeer() throws {
        let told = Mailbox<CInt>()
        let peer = try Peer { descriptor in
            var byte: UInt8 = 0
            told.put(read(descriptor, &byte, 1) < 0 ? errno : 0)
        }
        let loop = try EventLoop()
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = peer.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
        do {
            let stream = ByteStream(loop: loop, descriptor: Descriptor(owning: descriptor))
            stream.abort()
        }
        #expect(told.take() == ECONNRESET)
    }
}
