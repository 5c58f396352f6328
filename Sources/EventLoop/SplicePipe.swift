internal import CShims
internal import Glibc

/// A pipe by which the kernel moves bytes between sockets (splice(2)), at half the cost where many move at a time.
package struct SplicePipe: ~Copyable {
    /// Bytes that it may hold at most; with the 64 KiB that a pipe has unasked, nothing would be gained.
    package static let capacity = 1 << 20

    private let reading: Descriptor
    private let writing: Descriptor
    package private(set) var held = 0

    /// Nil where it can't be had: for lack of descriptors, or since the user's pipes hold too much (pipe(7)).
    package init?() {
        var ends: [CInt] = [-1, -1]
        guard pipe2(&ends, O_NONBLOCK | O_CLOEXEC) == 0 else { return nil }
        let reading = Descriptor(owning: ends[0])
        let writing = Descriptor(owning: ends[1])
        guard fcntl(writing.raw, shim_F_SETPIPE_SZ, CInt(Self.capacity)) >= CInt(Self.capacity) else { return nil }
        self.reading = reading
        self.writing = writing
    }

    /// Takes what a socket has received. Only while empty: the kernel doesn't tell "no data" from "no room".
    /// - Returns: bytes; 0: the peer has ended; -1: `errno` says why.
    package mutating func take(from socket: CInt) -> Int {
        let count = splice(socket, nil, writing.raw, nil, Self.capacity - held, shim_SPLICE_MOVE_NONBLOCK)
        if count > 0 { held += count }
        return count
    }

    /// Gives what it holds to a socket, and returns the taken bytes; -1: `errno` says why.
    package mutating func give(to socket: CInt) -> Int {
        let count = splice(reading.raw, nil, socket, nil, held, shim_SPLICE_MOVE_NONBLOCK)
        if count > 0 { held -= count }
        return count
    }
}
