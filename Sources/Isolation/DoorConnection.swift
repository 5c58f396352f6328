internal import PinproxyEventLoop
internal import PinproxyHTTPWire
internal import PinproxyTransport

/// A connection of the command, forwarded to the proxy.
final class DoorConnection: ByteStreamOwner {
    private enum State {
        /// Awaits the client's first message, which names the host.
        case opening
        /// Checks that the host has the address that the client connected to.
        case checking(Authority)
        /// The proxy was asked for a tunnel, and hasn't answered yet.
        case asking(ByteStream, Authority)
        case relaying(Relay)
        /// It is a client of the name server.
        case answering
        /// The response is sent. The client's last bytes are discarded: unread, they would cause a reset.
        case lingering
        case over
    }

    private static let openingNanoseconds: UInt64 = 30_000_000_000
    private static let lingerNanoseconds: UInt64 = 2_000_000_000
    /// Half-closed connections are not timed out here: the proxy does it.
    private static let restNanoseconds: UInt64 = 24 * 3600 * 1_000_000_000
    /// After the command's end, a relay that is idle for so long is closed.
    private static let quietNanoseconds: UInt64 = 200_000_000

    private let door: DoorContext
    private let stream: ByteStream
    private let ended: (DoorConnection) -> Void
    private var opening: Opening?
    private var state = State.opening
    private var received: ByteBuffer
    private var answered: ByteBuffer
    private lazy var deadline = Deadline(loop: door.loop, owner: self) { $0.timedOut() }

    /// - Parameter ended: called once.
    init(_ door: DoorContext, _ socket: consuming Descriptor, ended: @escaping (DoorConnection) -> Void) {
        self.door = door
        self.ended = ended
        stream = ByteStream(loop: door.loop, descriptor: socket)
        received = ByteBuffer(slabs: door.slabs)
        answered = ByteBuffer(slabs: door.slabs)
    }

    func start() {
        stream.owner = self
        guard let meant = stream.localAddress else { return abort() }
        switch door.network.way(to: meant) {
        case .proxy: return connect(for: nil)
        case .names: state = .answering
        case .tls: opening = Opening(at: meant, isTLS: true)
        case .http: opening = Opening(at: meant, isTLS: false)
        }
        deadline.set(afterNanoseconds: Self.openingNanoseconds)
        stream.wantsRead = true
    }

    /// After the command's end: delivers the bytes that it has sent.
    func drain() {
        switch state {
        case .relaying(let relay):
            relay.drain(quietNanoseconds: Self.quietNanoseconds, because: "the command has ended")
        case .opening:
            receive()
            if case .opening = state { abort() }
        case .answering: abort()
        case .checking, .asking, .lingering, .over: break
        }
    }

    // MARK: What the client says first

    private func receive() {
        guard received.makeRoom(limit: 128 << 10) else { return abort() }
        switch stream.read(into: &received) {
        case .received: break
        case .blocked: return
        case .ended:
            // The client still has to read the answer.
            if case .answering = state { return finish() }
            return abort()
        case .failed: return abort()
        }
        if case .answering = state { return answerName() }
        guard let progress = opening?.read(received.span) else { return abort() }
        switch progress {
        case .incomplete: break
        case .refused(let refusal, let answer): refuse(refusal, answer)
        case .wants(let authority): check(authority)
        }
    }

    private func check(_ authority: Authority) {
        deadline.clear()
        stream.wantsRead = false
        guard let opening else { return abort() }
        state = .checking(authority)
        door.names.check(opening.meant.ip, isOf: authority.host) { [weak self] verdict in
            self?.checked(authority, opening, verdict)
        }
    }

    private func checked(_ authority: Authority, _ opening: Opening, _ verdict: Names.Verdict) {
        guard case .checking = state else { return }
        switch verdict {
        case .isOfName: connect(for: authority)
        case .isNot(let others):
            let has =
                others.isEmpty ? "it has none" : "it has \(others.prefix(4).map(\.description).joined(separator: ", "))"
            refuse(
                opening, authority,
                "the program has connected to \(opening.meant.ip), which is not an address of this host: \(has)")
        case .cannotTell(let cause):
            refuse(
                opening, authority,
                "can't check whether \(opening.meant.ip) is an address of this host: \(cause)")
        }
    }

    // MARK: The proxy

    /// - Parameter authority: the host that the client wants; nil: it uses the proxy explicitly.
    private func connect(for authority: Authority?) {
        let socket: Descriptor
        do throws(ProxyUnreachable) {
            socket = try door.connect()
        } catch {
            let cause = "the proxy can't be reached: \(error.cause)"
            if let opening, let authority { return refuse(opening, authority, cause) }
            door.reports.refused(DoorRefusal(host: "\(door.network.proxy)", cause: cause))
            return abort()
        }
        let proxy = ByteStream(loop: door.loop, descriptor: socket)
        guard let opening, let authority else { return relay(to: proxy) }
        if opening.isTLS { return ask(proxy, for: authority) }
        let (length, head) = opening.request(
            to: authority, from: received.span, credentials: door.credentials)
        var request = ByteBuffer(slabs: door.slabs)
        request.append(head)
        request.append(copying: received.span.extracting(length...).bytes)
        received = request
        relay(to: proxy)
    }

    private func ask(_ proxy: ByteStream, for authority: Authority) {
        let credentials = door.credentials.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
        var request = ByteBuffer(slabs: door.slabs)
        request.append(Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(credentials)\r\n".utf8))
        state = .asking(proxy, authority)
        proxy.owner = self
        // A new socket's buffer always has room for a few hundred bytes.
        guard case .done = proxy.write(request.count, from: &request) else { return proxyIsGone(proxy, authority) }
        proxy.wantsRead = true
    }

    private func receiveAnswer(of proxy: ByteStream, about authority: Authority) {
        guard answered.makeRoom(limit: 64 << 10) else { return proxyIsGone(proxy, authority) }
        switch proxy.read(into: &answered) {
        case .received: break
        case .blocked: return
        case .ended, .failed: return proxyIsGone(proxy, authority)
        }
        var parser = HeadParser(limit: 64 << 10)
        var head = ResponseHead()
        switch parser.parseResponse(answered.span, to: .connect, into: &head) {
        case .incomplete: return
        case .complete where head.status == 200:
            answered.consume(Int(head.length))
            relay(to: proxy)
        case .complete:
            proxy.abort()
            // The proxy reports the reason to the run.
            linger(after: Opening.denied)
        case .malformed, .tooLarge, .tooManyFields: proxyIsGone(proxy, authority)
        }
    }

    private func proxyIsGone(_ proxy: ByteStream, _ authority: Authority) {
        proxy.abort()
        guard let opening else { return abort() }
        refuse(opening, authority, "the proxy has ended the connection")
    }

    private func relay(to proxy: ByteStream) {
        deadline.clear()
        let relay = Relay(
            loop: door.loop, downstream: stream, upstream: proxy, received: received.take(), answered: answered.take(),
            idleNanoseconds: Self.restNanoseconds
        ) { [weak self] _ in self?.end() }
        state = .relaying(relay)
        relay.start()
        if case .relaying = state, door.isDraining { drain() }
    }

    // MARK: Names

    private func answerName() {
        guard let message = NameStream.next(&received) else { return }
        stream.wantsRead = false
        NameStream.answer(message, by: door.names) { [weak self] bytes in self?.writeName(bytes) }
    }

    private func writeName(_ bytes: [UInt8]?) {
        guard case .answering = state, let bytes else { return abort() }
        answered.append(bytes)
        flush()
    }

    // MARK: The end

    private func refuse(_ opening: Opening, _ authority: Authority, _ cause: String) {
        guard case .refused(let refusal, let answer) = opening.refused(authority, cause) else { return abort() }
        refuse(refusal, answer)
    }

    private func refuse(_ refusal: DoorRefusal, _ answer: [UInt8]) {
        door.reports.refused(refusal)
        linger(after: answer)
    }

    private func linger(after last: [UInt8]) {
        state = .lingering
        deadline.set(afterNanoseconds: Self.lingerNanoseconds)
        answered = ByteBuffer(slabs: door.slabs)
        answered.append(last)
        flush()
    }

    private func flush() {
        switch stream.write(answered.count, from: &answered) {
        case .blocked: return
        case .failed: return abort()
        case .done: answered.releaseIfEmpty()
        }
        if case .lingering = state {
            stream.endWriting()
            stream.wantsRead = true
            return
        }
        deadline.set(afterNanoseconds: Self.openingNanoseconds)
        stream.wantsRead = true
        if !received.isEmpty { answerName() }
    }

    private func readAway() {
        received = ByteBuffer(slabs: door.slabs)
        switch stream.read(into: &received) {
        case .received, .blocked: break
        case .ended, .failed: abort()
        }
    }

    private func timedOut() { abort() }

    /// Without taking back what was said.
    private func finish() {
        stream.stop()
        end()
    }

    private func abort() {
        switch state {
        case .over: return
        case .relaying(let relay): return relay.cancel(because: "the door is closed")
        case .asking(let proxy, _): proxy.abort()
        case .opening, .checking, .answering, .lingering: break
        }
        if case .lingering = state { return finish() }
        stream.abort()
        end()
    }

    private func end() {
        deadline.clear()
        state = .over
        // Called by what this holds: it goes once that has returned.
        door.loop.afterThisTurn { [self] in ended(self) }
    }

    // MARK: Events

    func streamIsReadable(_ stream: ByteStream) {
        switch state {
        case .opening, .answering: receive()
        case .asking(let proxy, let authority) where stream === proxy: receiveAnswer(of: proxy, about: authority)
        case .lingering: readAway()
        case .checking, .asking, .relaying, .over: stream.wantsRead = false
        }
    }

    func streamIsWritable(_ stream: ByteStream) {
        switch state {
        case .answering, .lingering: flush()
        case .opening, .checking, .asking, .relaying, .over: break
        }
    }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}
}
