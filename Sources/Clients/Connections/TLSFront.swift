package import PinproxyEventLoop
import PinproxyHTTP2
package import PinproxySession
package import PinproxyTLS
package import PinproxyTransport

/// TLS on the proxy's own port (an `https://` proxy), before a client connection over a socket pair, at a copy's cost.
/// A client that chose HTTP/2 has one for each stream.
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
    private var http2: HTTP2Front?
    private lazy var deadline = Deadline(loop: loop, owner: self) {
        $0.finish(failure: "the TLS handshake took too long")
    }
    private var secured: Secured?
    private let noticed: (HTTP2Notice, TLSFront) -> Void
    private var ended: ((TLSFront, String?) -> Void)?
    /// No client was served yet.
    package private(set) var isFirst = true

    /// Takes the plain end of a socket pair, the stream of HTTP/2 that it carries, and what to do if it is aborted: the
    /// client would take the cut for an end. False: there are too many clients.
    package typealias Secured = (TLSFront, consuming Descriptor, _ stream: Int32?, @escaping () -> Void) -> Bool

    /// - Parameters:
    ///   - secured: called once, or for each stream of HTTP/2.
    ///   - noticed: called for what the client did to a connection of HTTP/2.
    ///   - ended: called once, with what went wrong before anything could be said.
    package init(
        loop: EventLoop, socket: consuming Descriptor, slabs: SlabPool, idleNanoseconds: UInt64,
        secured: @escaping Secured, noticed: @escaping (HTTP2Notice, TLSFront) -> Void,
        ended: @escaping (TLSFront, String?) -> Void
    ) {
        self.loop = loop
        self.slabs = slabs
        self.idleNanoseconds = idleNanoseconds
        self.secured = secured
        self.noticed = noticed
        self.ended = ended
        stream = ByteStream(loop: loop, descriptor: socket)
        stream.owner = self
    }

    package func start(_ context: TLSServerContext, within nanoseconds: UInt64) {
        deadline.set(afterNanoseconds: nanoseconds)
        self.context = context
        stream.wantsRead = true
    }

    /// The first byte distinguishes TLS from plain HTTP, which the port serves too.
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
        if stream.withTLS({ $0.alpn }) == HTTPProtocol.http2.rawValue { return serveHTTP2() }
        let inside: ByteStream
        do {
            let pair = try Socket.pair()
            inside = ByteStream(loop: loop, descriptor: Descriptor(owning: pair.0))
            _ = serve(Descriptor(owning: pair.1), nil) { [weak self] in self?.stop() }
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

    private func serve(_ socket: consuming Descriptor, _ stream: Int32?, _ aborted: @escaping () -> Void) -> Bool {
        guard let secured else { return false }
        defer { isFirst = false }
        return secured(self, socket, stream, aborted)
    }

    private func serveHTTP2() {
        do throws(HTTP2Unavailable) {
            let front = try HTTP2Front(over: stream, loop: loop, slabs: slabs, idleNanoseconds: idleNanoseconds) {
                [weak self] socket, stream, aborted in
                self?.serve(socket, stream.rawValue, aborted) ?? false
            } noticed: { [weak self] notice in
                if let self { noticed(notice, self) }
            } ended: { [weak self] in
                self?.finish(failure: nil)
            }
            http2 = front
            front.start()
        } catch {
            finish(failure: "there is no memory for HTTP/2")
        }
    }

    /// Streams of HTTP/2 that are open; nil: the client speaks another version.
    package var streams: Int? { http2?.connection.streamCount }

    /// The proxy stops: a handshake in flight may end within this time.
    package func drain(within nanoseconds: UInt64) {
        if let http2 { return http2.drain(within: nanoseconds) }
        if relay == nil, ended != nil { deadline.set(afterNanoseconds: nanoseconds) }
    }

    package func stop() {
        if let http2 { return http2.connection.close(now: true) }
        if let relay { relay.cancel(because: "stopped") } else { finish(failure: nil) }
    }

    private func finish(failure: String?) {
        guard let ended else { return }
        self.ended = nil
        secured = nil
        deadline.clear()
        if relay == nil, http2 == nil { stream.abort() }
        ended(self, failure)
    }
}
