import Glibc
import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Reading, writing and closing, with every possible result.
@Suite struct TransferTests {
    let peers: Peers

    init() throws { peers = try Peers.shared.get() }

    private func connected(_ version: TLSVersion = .tls13) throws -> ConnectionPair {
        let pair = try ConnectionPair(
            client: peers.clientContext, server: Peers.server(version), identity: peers.identity)
        try pair.connect()
        return pair
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func readsInParts(_ version: TLSVersion) throws {
        let pair = try connected(version)
        #expect(pair.client.receive() == .wantsRead)
        #expect(pair.server.send("hello, world") == 12)
        #expect(pair.client.receive(atMost: 5) == .complete("hello"))
        #expect(pair.client.hasPending)
        #expect(pair.client.receive(atMost: 100) == .complete(", world"))
        #expect(!pair.client.hasPending)
        #expect(pair.client.receive() == .wantsRead)
    }

    @Test func recordsThatArriveTogether() throws {
        let pair = try connected()
        #expect(pair.server.send("one") == 3)
        #expect(pair.server.send("two") == 3)
        #expect(pair.client.receive() == .complete("one"))
        #expect(pair.client.hasPending)
        #expect(pair.client.receive() == .complete("two"))
        #expect(!pair.client.hasPending)
    }

    /// One system call reads all of them, and unread bytes are kept.
    @Test func oneReadOfTheSocketBringsManyRecords() throws {
        let pair = try connected()
        pair.client.readAhead()
        let texts = (0..<100).map { "record \($0)" }
        for text in texts { #expect(pair.server.send(text) == text.utf8.count) }
        #expect(pair.client.receive() == .complete(texts[0]))
        var byte: UInt8 = 0
        #expect(recv(pair.sockets.client, &byte, 1, CInt(MSG_PEEK)) == -1 && errno == EAGAIN)
        for text in texts.dropFirst() {
            #expect(pair.client.hasPending)
            #expect(pair.client.receive() == .complete(text))
        }
        #expect(!pair.client.hasPending)
        #expect(pair.client.receive() == .wantsRead)
        #expect(pair.server.send("more") == 4)
        #expect(pair.client.receive() == .complete("more"))
    }

    /// More than OpenSSL's buffer holds, so that one record doesn't fit.
    @Test(arguments: [false, true])
    func thousandsOfRecordsThatArriveTogether(_ readsAhead: Bool) throws {
        let pair = try connected()
        #expect(pair.client.receive() == .wantsRead)
        if readsAhead { pair.client.readAhead() }
        var wire: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        for number in 10_000..<13_000 {
            #expect(pair.server.send("\(number)") == 5)
            let count = recv(pair.sockets.client, &piece, piece.count, 0)
            try #require(count > 5)
            wire += piece[..<count]
        }
        try #require(send(pair.sockets.server, wire, wire.count, 0) == wire.count)
        for number in 10_000..<13_000 { try #require(pair.client.receive() == .complete("\(number)")) }
    }

    /// A read may end at any byte of a record.
    @Test(arguments: [1, 4, 5, 6, 20, 16_000], [TLSVersion.tls12, .tls13])
    func aRecordInTwoPieces(_ cut: Int, _ version: TLSVersion) throws {
        let pair = try connected(version)
        pair.client.readAhead()
        #expect(pair.client.receive() == .wantsRead)
        let text = String(repeating: "a", count: 16_384)
        #expect(pair.server.send(text) == text.utf8.count)
        var record = [UInt8](repeating: 0, count: 20_000)
        let count = recv(pair.sockets.client, &record, record.count, 0)
        try #require(count > cut)
        #expect(send(pair.sockets.server, record, cut, 0) == cut)
        #expect(pair.client.receive() == .wantsRead)
        #expect(send(pair.sockets.server, Array(record[cut..<count]), count - cut, 0) == count - cut)
        #expect(pair.client.receive(atMost: 1 << 15) == .complete(text))
    }

    @Test(arguments: [false, true])
    func bytesThatWereReadAlreadyComeFirst(_ readsAhead: Bool) throws {
        let sockets = try SocketPair()
        let client = Endpoint(
            try TLSConnection(
                client: peers.clientContext, descriptor: sockets.client, serverName: .dns("api.test"),
                verify: { _ in .accept }))
        #expect(client.handshake().isPending)
        var hello = [UInt8](repeating: 0, count: 4096)
        let count = recv(sockets.server, &hello, hello.count, 0)
        try #require(count > 100)
        #expect(send(sockets.client, Array(hello[50..<count]), count - 50, 0) == count - 50)
        let server = Endpoint(
            try TLSConnection(
                server: Peers.server(.tls13), descriptor: sockets.server, identity: peers.identity,
                ticketContext: Array("test".utf8), alreadyReceived: Array(hello[..<50])))
        #expect(server.handshake().isPending)
        try client.handshake().get()
        // Data that arrives with the end of the handshake is read with it.
        #expect(client.send("hello") == 5)
        #expect(client.send("world") == 5)
        try server.handshake().get()
        if readsAhead { server.readAhead() }
        #expect(server.receive() == .complete("hello"))
        #expect(server.receive() == .complete("world"))
        #expect(!server.hasPending)
        #expect(client.send("again") == 5)
        #expect(server.receive() == .complete("again"))
    }

    @Test func emptyWrite() throws {
        let pair = try connected()
        #expect(pair.client.send("") == 0)
        #expect(pair.server.receive() == .wantsRead)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func bulkWithPartialWritesFromMovingMemory(_ version: TLSVersion) throws {
        let pair = try connected(version)
        let total = 3_000_000
        let sent = (0..<total).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        var received: [UInt8] = []
        var written = 0
        var waits = 0
        var buffer = [UInt8](repeating: 0, count: 70_000)
        while received.count < total {
            while written < total {
                // A new copy each time, so that a write is repeated from other memory.
                let rest = Array(sent[written..<min(written + 100_000, total)])
                let result = rest.withUnsafeBytes { pair.client.write($0) }
                guard case .complete(let count) = result else {
                    try #require(result == .wantsWrite)
                    waits += 1
                    break
                }
                written += count
            }
            while true {
                let result = buffer.withUnsafeMutableBytes { pair.server.read(into: $0) }
                if result == .wantsRead { break }
                received += buffer[..<(try result.get())]
            }
        }
        #expect(received == sent)
        #expect(waits > 0)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func orderlyEnd(_ version: TLSVersion) throws {
        let pair = try connected(version)
        #expect(pair.server.send("last words") == 10)
        try pair.server.shutdown().get()
        #expect(pair.client.receive() == .complete("last words"))
        #expect(pair.client.receive() == .closed)
        #expect(pair.client.receive() == .closed)
        // The other direction is still open.
        #expect(pair.client.send("so long") == 7)
        #expect(pair.server.receive() == .complete("so long"))
        try pair.client.shutdown().get()
        #expect(pair.server.receive() == .closed)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func truncationIsAFailure(_ version: TLSVersion) throws {
        let pair = try connected(version)
        #expect(pair.server.send("half a mess") == 11)
        pair.sockets.closeServer()
        #expect(pair.client.receive() == .complete("half a mess"))
        let end = pair.client.receive()
        #expect(end.kind == .unexpectedEOF)
        #expect(end.message == "the peer closed the connection without ending TLS (no close_notify)")
        try pair.client.shutdown().get()
    }

    @Test func aRecordCutShortIsAFailure() throws {
        let pair = try connected()
        let header: [UInt8] = [23, 3, 3, 0, 100, 1, 2, 3]
        #expect(write(pair.sockets.server, header, header.count) == header.count)
        pair.sockets.closeServer()
        #expect(pair.client.receive().kind == .unexpectedEOF)
    }

    @Test func forgedRecordIsAFailure() throws {
        let pair = try connected()
        let record: [UInt8] = [23, 3, 3, 0, 32] + [UInt8](repeating: 7, count: 32)
        #expect(write(pair.sockets.server, record, record.count) == record.count)
        #expect(pair.client.receive().kind == .protocolError)
        #expect(pair.server.receive().kind == .alertReceived(20))
    }

    /// A server answers early and closes: its answer can still be read after the failed write.
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func whatArrivedCanBeReadAfterAFailedWrite(_ version: TLSVersion) throws {
        let pair = try connected(version)
        #expect(pair.server.send("too large") == 9)
        pair.sockets.closeServer()
        let bytes: [UInt8] = [1, 2, 3]
        for _ in 1...2 { #expect(bytes.withUnsafeBytes { pair.client.write($0) }.kind == .system(EPIPE)) }
        #expect(pair.client.receive() == .complete("too large"))
        #expect(pair.client.receive().kind == .unexpectedEOF)
    }

    @Test func writingToAPeerThatIsGone() throws {
        let pair = try connected()
        pair.sockets.closeServer()
        let bytes: [UInt8] = [1, 2, 3]
        // SIGPIPE would end the test before it sees the error.
        let outcome = bytes.withUnsafeBytes { pair.client.write($0) }
        #expect(outcome.kind == .system(EPIPE))
        #expect(outcome.message == "Broken pipe")
    }
}
