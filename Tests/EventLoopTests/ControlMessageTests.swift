import Glibc
import Testing

@testable import PinproxyEventLoop

@Suite struct ControlMessageTests {
    @Test func descriptorsGoWithAMessage() throws {
        let (near, far) = try DescriptorMessage.pair()
        defer { close(far) }
        var ends: [CInt] = [-1, -1]
        #expect(pipe(&ends) == 0)
        try DescriptorMessage.send([1, 2, 3], ends, over: near)
        try DescriptorMessage.send([4], over: near)
        for end in ends { close(end) }
        let first = try #require(try DescriptorMessage.receive(from: far))
        #expect(first.bytes == [1, 2, 3] && first.descriptors.count == 2)
        // They are for the same pipe, and are closed on exec.
        #expect(write(first.descriptors[1], "x", 1) == 1)
        var byte: UInt8 = 0
        #expect(read(first.descriptors[0], &byte, 1) == 1 && byte == UInt8(ascii: "x"))
        for descriptor in first.descriptors {
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            close(descriptor)
        }
        let second = try #require(try DescriptorMessage.receive(from: far))
        #expect(second.bytes == [4] && second.descriptors.isEmpty)
        close(near)
        #expect(try DescriptorMessage.receive(from: far) == nil)
        #expect(throws: SystemError(code: EPIPE, call: "sendmsg")) { try DescriptorMessage.send([1], over: far) }
    }

    /// A wildcard socket answers from the address that was asked. All of 127.0.0.0/8 is local.
    @Test(arguments: [("0.0.0.0", "127.9.8.7", AF_INET), ("::", "::1", AF_INET6)])
    func datagramsAreAnsweredFromWhereTheyWereSent(everywhere: String, asked: String, family: CInt) throws {
        let server = try DatagramSocket.bind(on: SocketAddress(ip: #require(IPAddress(everywhere)), port: 0))
        let port = try #require(Socket.localAddress(server.raw)).port
        let client = Descriptor(owning: socket(family, CInt(SOCK_DGRAM.rawValue), 0))
        let address = SocketAddress(ip: try #require(IPAddress(asked)), port: port)
        let raw = client.raw
        #expect(address.withSockaddr { connect(raw, $0, $1) } == 0)
        #expect(DatagramSocket.receive(server.raw, longest: 16) == nil)
        #expect(send(raw, "question", 8, 0) == 8)
        let arrival = try #require(DatagramSocket.receive(server.raw, longest: 16))
        #expect(arrival.bytes == Array("question".utf8) && arrival.local == address.ip)
        DatagramSocket.answer([1, 2], to: arrival, over: server.raw)
        // On a connected socket the kernel drops what comes from another address.
        var answer: [UInt8] = [0, 0, 0]
        #expect(recv(raw, &answer, 3, 0) == 2 && answer == [1, 2, 0])
    }
}
