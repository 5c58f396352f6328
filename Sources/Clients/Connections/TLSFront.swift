package import EventLoop
package import TLS
package import Transport

/// TLS on the proxy's own port (an `https://` proxy), before a client connection over a socket pair, at a copy's cost.
package final class TLSFront: ByteStreamOwner {
    private let loop: EventLoop
    /// Our end of the client's connection.
    package var localAddress: SocketAddress? { stream.localAddress }
    private let stream: ByteStream
    private let slabs: SlabPool
    private let idleNanoseconds: UInt64
    /// Nil once the client's first byte is known.
    private var context: TLSServerContext?
    private var relay: Relay?
    private lazy var deadline = Deadline(loop: loop, owner: self) {
        $0.finish(failure: "the TLS handshake took too long")
    }
    private var secured: ((TLSFront, consuming Descriptor) -> Void)?
    private var ended: ((TLSFront, String?) -> Void)?

    /// - Parameters:
    ///   - secured: takes the plain end of the pair; called at most once. If it is aborted, ``stop()`` must be called,
    ///     or the client would take the cut for an end.
    ///   - ended: called once, with what went wrong before anything could be said.
    package init(
        loop: EventLoop, socket: consuming Descriptor, slabs: SlabPool, idleNanoseconds: UInt64,
        secured: @escaping (TLSFront, consuming Descriptor) -> Void, ended: @escaping (TLSFront, String?) -> Void
    ) {
        self.loop = loop
        self.slabs = slabs
        self.idleNanoseconds = idleNanoseconds
        self.secured = secured
        self.ended = ended
        stream = ByteStream(loop: loop, descriptor: socket)
        stream.owner = self
    }

    package func start(_ context: TLSServerContext, within nanoseconds: UInt64) {
        deadline.set(afterNanoseconds: nanoseconds)
        self.context = context
        stream.wantsRead = true
    }

    /// The first byte tells TLS from plain HTTP, which the port speaks too.
    package func streamIsReadable(_ stream: ByteStream) {
        guard let context else { return }
        switch stream.peek() {
        case .byte(let first):
            self.context = nil
            if first == 0x16 { handshake(context) } else { streamDidSecure(stream, .success(())) }
        case .ended: finish(failure: nil)
        case .nothing: break
        }
    }

    private func handshake(_ context: TLSServerContext) {
        do {
            let connection = try stream.withDescriptor { descriptor in
                try TLSConnection(server: context, descriptor: descriptor, ticketContext: Array("proxy".utf8))
            }
            stream.secure(connection)
        } catch {
            finish(failure: "\(error)")
        }
    }

    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {
        deadline.clear()
        if case .failure(let error) = result { return finish(failure: error.description) }
        let inside: ByteStream
        do {
            let pair = try Socket.pair()
            inside = ByteStream(loop: loop, descriptor: Descriptor(owning: pair.0))
            secured?(self, Descriptor(owning: pair.1))
            secured = nil
        } catch {
            return finish(failure: "\(error)")
        }
        let relay = Relay(
            loop: loop, downstream: stream, upstream: inside, received: ByteBuffer(slabs: slabs),
            answered: ByteBuffer(slabs: slabs), idleNanoseconds: idleNanoseconds
        ) { [weak self] _ in self?.finish(failure: nil) }
        self.relay = relay
        relay.start()
    }

    /// The proxy stops: a handshake in flight may end within this time.
    package func drain(within nanoseconds: UInt64) {
        if relay == nil, ended != nil { deadline.set(afterNanoseconds: nanoseconds) }
    }

    package func stop() {
        if let relay { relay.cancel(because: "stopped") } else { finish(failure: nil) }
    }

    private func finish(failure: String?) {
        guard let ended else { return }
        self.ended = nil
        secured = nil
        deadline.clear()
        if relay == nil { stream.abort() }
        ended(self, failure)
    }
}
