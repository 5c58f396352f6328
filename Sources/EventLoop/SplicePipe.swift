internal import CPinproxyShims
internal import Glibc

/// A pipe for moving bytes between sockets within the kernel (splice(2)), at half the cost in bulk.
package struct SplicePipe: ~Copyable {
    /// Bytes; the default of 64 KiB would gain nothing.
    package static let capacity = 1 << 20

    private let reading: Descriptor
    private let writing: Descriptor
    package private(set) var held = 0

    /// Nil without descriptors, or beyond the user's limit of pipe memory (pipe(7)).
    package init?() {
        var ends: [CInt] = [-1, -1]
        guard pipe2(&ends, O_NONBLOCK | O_CLOEXEC) == 0 else { return nil }
        let reading = Descriptor(owning: ends[0])
        let writing = Descriptor(owning: ends[1])
        guard fcntl(writing.raw, shim_F_SETPIPE_SZ, CInt(Self.capacity)) >= CInt(Self.capacity) else { return nil }
        self.reading = reading
        self.writing = writing
    }

    /// Takes what a socket has received. Only while empty: the kernel doesn't distinguish "no data" from "no room".
    /// - Returns: bytes; 0: the peer has ended; -1: see `errno`.
    package mutating func take(from socket: CInt) -> Int {
        let count = splice(socket, nil, writing.raw, nil, Self.capacity - held, shim_SPLICE_MOVE_NONBLOCK)
        if count > 0 { held += count }
        return count
    }

    /// Writes its bytes to a socket, and returns the count; -1: see `errno`.
    package mutating func give(to socket: CInt) -> Int {
        let count = splice(reading.raw, nil, socket, nil, held, shim_SPLICE_MOVE_NONBLOCK)
        if count > 0 { held -= count }
        return count
    }
}
