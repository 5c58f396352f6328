import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// The origin of ``Configuration/TestHost``, one for each worker, over socket pairs with TLS. Any client may use it.
final class TestOrigin: OwnOrigin {
    /// Connections; one more displaces the oldest.
    static let limit = 32

    private let loop: EventLoop
    private let slabs: SlabPool
    private let hosts: TestHosts
    private let tls: TLSServerContext
    private let unixTime: @Sendable () -> UnixTime
    /// The oldest first.
    private var connections: [TestOriginConnection] = []

    init(
        loop: EventLoop, slabs: SlabPool, hosts: TestHosts, tls: TLSServerContext,
        unixTime: @escaping @Sendable () -> UnixTime
    ) {
        self.loop = loop
        self.slabs = slabs
        self.hosts = hosts
        self.tls = tls
        self.unixTime = unixTime
    }

    func connection(to host: String) throws(OwnOriginError) -> Descriptor? {
        guard let host = TestHost(host) else { return nil }
        if connections.count >= Self.limit { connections.first?.end() }
        do {
            let identity = try hosts.identity(for: host, now: unixTime())
            let pair = try Socket.pair()
            let near = Descriptor(owning: pair.0)
            let connection = TestOriginConnection(
                stream: ByteStream(loop: loop, descriptor: Descriptor(owning: pair.1)), loop: loop, slabs: slabs
            ) { [weak self] ended in self?.connections.removeAll { $0 === ended } }
            connections.append(connection)
            connection.start(tls, identity)
            return near
        } catch {
            throw OwnOriginError("\(error)")
        }
    }
}

/// One connection to ``TestOrigin``: a TLS handshake, one request, one answer. The proxy at the other end ends it.
final class TestOriginConnection: ByteStreamOwner {
    private static let longestHead = 64 << 10
    /// For the handshake, and for the proxy's close after the answer.
    private static let patienceNanoseconds: UInt64 = 30_000_000_000

    private let stream: ByteStream
    private var received: ByteBuffer
    private var answer: ByteBuffer
    private var isAnswered = false
    private let deadline: Deadline
    private var ended: ((TestOriginConnection) -> Void)?

    init(stream: ByteStream, loop: EventLoop, slabs: SlabPool, ended: @escaping (TestOriginConnection) -> Void) {
        self.stream = stream
        self.ended = ended
        received = ByteBuffer(slabs: slabs)
        answer = ByteBuffer(slabs: slabs)
        deadline = Deadline(loop: loop)
        deadline.bind(to: self) { $0.end() }
        stream.owner = self
    }

    func start(_ context: TLSServerContext, _ identity: Identity) {
        deadline.set(afterNanoseconds: Self.patienceNanoseconds)
        do {
            let connection = try stream.withDescriptor { descriptor in
                try TLSConnection(
                    server: context, descriptor: descriptor, identity: identity, ticketContext: Array("test".utf8))
            }
            stream.secure(connection)
        } catch {
            end()
        }
    }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {
        guard case .success = result else { return end() }
        // The proxy may hold the connection as long as its client's.
        deadline.clear()
        stream.wantsRead = true
        if stream.holdsBytes { streamIsReadable(stream) }
    }

    func streamIsReadable(_ stream: ByteStream) {
        repeat {
            if isAnswered { received.consume(received.count) }
            guard received.makeRoom(limit: Self.longestHead) else { return end() }
            switch stream.read(into: &received) {
            case .received: if !isAnswered { answerRequest() }
            case .blocked: return
            case .ended, .failed: return end()
            }
        } while ended != nil && stream.holdsBytes
    }

    private func answerRequest() {
        var parser = HeadParser(limit: Self.longestHead)
        var head = RequestHead()
        switch parser.parseRequest(received.span, into: &head) {
        case .incomplete: return
        case .complete: break
        case .malformed, .tooLarge, .tooManyFields: return end()
        }
        let page = Self.page(for: head, received.span)
        var response = ResponseText(status: 200, reason: "OK")
        response.addBody(type: page.type, count: page.text.utf8.count, keepAlive: false)
        let text = response.bytes(with: head.method == .head ? [] : Array(page.text.utf8))
        isAnswered = true
        answer.append(text)
        deadline.set(afterNanoseconds: Self.patienceNanoseconds)
        streamIsWritable(stream)
    }

    private static func page(for request: RequestHead, _ bytes: Span<UInt8>) -> TestSite.Page {
        TestSite.page(at: request.target.text(in: bytes), of: "https://\(request.host?.text(in: bytes) ?? "")")
    }

    func streamIsWritable(_ stream: ByteStream) {
        guard answer.count > 0 else { return }
        switch stream.write(answer.count, from: &answer) {
        case .done: stream.endWriting()
        case .blocked: break
        case .failed: end()
        }
    }

    func end() {
        guard let ended else { return }
        self.ended = nil
        deadline.clear()
        stream.stop()
        ended(self)
    }
}
