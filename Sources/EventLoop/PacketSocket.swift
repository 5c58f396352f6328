internal import Glibc

/// A connection of packets (``UnixSocket/Kind/packets``), non-blocking.
package struct PacketSocket: ~Copyable {
    private let descriptor: Descriptor

    package enum Received {
        case packet([UInt8])
        case wouldBlock
        case closed
    }

    package enum Sent {
        case sent
        case wouldBlock
        case failed(SystemError)
    }

    /// Takes over a non-blocking connection.
    package init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    package var raw: CInt { descriptor.raw }

    /// The next packet. One of more than `longest` bytes closes the connection: a part of it means nothing.
    package func receive(longest: Int) -> Received {
        var room = [UInt8](repeating: 0, count: longest + 1)
        while true {
            let count = recv(descriptor.raw, &room, room.count, 0)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return .wouldBlock }
            guard count > 0, count <= longest else { return .closed }
            return .packet(Array(room[..<count]))
        }
    }

    package func send(_ packet: [UInt8]) -> Sent {
        while true {
            let count = Glibc.send(descriptor.raw, packet, packet.count, CInt(MSG_NOSIGNAL))
            if count >= 0 { return .sent }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            default: return .failed(.last("send"))
            }
        }
    }
}
