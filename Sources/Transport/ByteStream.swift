// Transport: streams of bytes over sockets, plain or TLS, carried within a watermark.

import Glibc
package import PinproxyEventLoop
package import PinproxyTLS

/// Receives a stream's events on its loop, never from within a call into the stream but for
/// ``streamDidSecure(_:_:)``, which ``ByteStream/secure(_:)`` may call before it returns.
package protocol ByteStreamOwner: AnyObject {
    /// Bytes, or the end, are available. Called until they are read or ``ByteStream/wantsRead`` is false.
    func streamIsReadable(_ stream: ByteStream)
    func streamIsWritable(_ stream: ByteStream)
    /// The handshake of ``ByteStream/secure(_:)`` ended. Called once.
    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>)
}

extension ByteStreamOwner {
    package func streamIsWritable(_ stream: ByteStream) {}
    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}
}

package enum StreamError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The socket failed with this `errno`, e.g. ECONNRESET.
    case socket(CInt)
    /// TLS failed: a malformed record, an alert, or an end without close_notify.
    case tls(TLSError)
    /// A stream of a shared connection ended, with a human-readable reason.
    case stream(String)

    package var description: String {
        switch self {
        case .socket(let code): String(cString: strerror(code))
        case .tls(let error): error.message
        case .stream(let cause): cause
        }
    }

    package static func == (a: StreamError, b: StreamError) -> Bool { a.description == b.description }
}

package enum ReadOutcome {
    /// This many bytes were appended, at least one.
    case received(Int)
    case blocked
    /// The peer ended its side cleanly (FIN, or close_notify).
    case ended
    case failed(StreamError)
}

package enum WriteOutcome {
    case done
    /// Some or none were taken; ``ByteStreamOwner/streamIsWritable(_:)`` follows.
    case blocked
    case failed(StreamError)
}

/// One connected socket, in the clear or under TLS. Belongs to its loop; closes when released.
package final class ByteStream: SocketHandler {
    private enum Layer {
        case plain
        case handshake
        case tls
    }

    // unowned: the owner keeps the stream; before it goes, it stops the stream or sets another owner.
    @exclusivity(unchecked) package unowned var owner: (any ByteStreamOwner)?
    private let loop: EventLoop
    private var source: SocketSource?
    // Stored whole, as are the Booleans and the end below: no access of them can overlap another.
    @exclusivity(unchecked) private var layer = Layer.plain
    // Nothing that OpenSSL calls within an operation of its connection reaches this stream.
    @exclusivity(unchecked) private var tls: TLSConnection?
    private let raw: CInt

    /// Whether the owner wants read events; false for back-pressure.
    @exclusivity(unchecked) package var wantsRead = false {
        didSet { if wantsRead != oldValue { updateInterest() } }
    }
    @exclusivity(unchecked) private var wantsWrite = false {
        didSet { if wantsWrite != oldValue { updateInterest() } }
    }

    /// Takes over a connected, non-blocking socket.
    package init(loop: EventLoop, descriptor: consuming Descriptor) {
        self.loop = loop
        raw = descriptor.release()
        source = SocketSource(loop: loop, descriptor: raw, handler: self)
    }

    deinit {
        source?.invalidate()
        Glibc.close(raw)
    }

    package var localAddress: SocketAddress? { Socket.localAddress(raw) }
    package var isSecure: Bool { layer != .plain }

    /// Queries the TLS layer; nil in the clear.
    package func withTLS<R>(_ body: (borrowing TLSConnection) -> R) -> R? {
        switch tls {
        case .none: nil
        case .some(let connection): body(connection)
        }
    }

    /// Why the server ended TLS over a client certificate (``TLSConnection/certificateRefusal(at:)``).
    package func certificateRefusal(at time: UnixTime) -> ClientCertificateRefusal? {
        withTLS { $0.certificateRefusal(at: time) } ?? nil
    }

    /// Runs `connection`, made for ``withDescriptor(_:)``, over this stream.
    package func secure(_ connection: consuming TLSConnection) {
        tls = consume connection
        layer = .handshake
        continueHandshake()
    }

    package func withDescriptor<R: ~Copyable, E: Error>(_ body: (CInt) throws(E) -> R) throws(E) -> R { try body(raw) }

    // MARK: Reading and writing

    /// Whether the TLS layer holds bytes, or its end, without a readiness event to come.
    package var holdsBytes: Bool {
        layer == .tls && (knownEnd != nil || tls?.hasPending == true)
    }

    /// The peer may send many small records (``TLSConnection/readAhead()``).
    package func expectManyRecords() { tls?.readAhead() }

    /// Appends what is available: one system call, and what the TLS layer holds.
    package func read(into buffer: inout ByteBuffer) -> ReadOutcome {
        switch layer {
        case .plain:
            let tail = buffer.tail()
            let count = recv(raw, tail.baseAddress, tail.count, 0)
            if count > 0 {
                buffer.append(count)
                return .received(count)
            }
            if count == 0 { return knownEnd ?? .ended }
            return errno == EAGAIN || errno == EINTR ? .blocked : .failed(.socket(errno))
        case .handshake:
            return .blocked
        case .tls:
            return readTLS(into: &buffer)
        }
    }

    private func readTLS(into buffer: inout ByteBuffer) -> ReadOutcome {
        if let knownEnd { return knownEnd }
        guard tls?.readsAhead == true else { return readRecords(into: &buffer) }
        let slab = buffer.slabs.take()
        tls!.lend(UnsafeMutableRawBufferPointer(start: slab, count: SlabPool.slabSize))
        let outcome = readRecords(into: &buffer)
        tls!.takeBackMemory()
        buffer.slabs.giveBack(slab)
        return outcome
    }

    private func readRecords(into buffer: inout ByteBuffer) -> ReadOutcome {
        var total = 0
        repeat {
            switch tls!.read(into: buffer.tail()) {
            case .complete(let count):
                buffer.append(count)
                total += count
            case .wantsRead:
                return total > 0 ? .received(total) : .blocked
            case .wantsWrite:
                readWaitsForWrite = true
                wantsWrite = true
                return total > 0 ? .received(total) : .blocked
            case .closed:
                knownEnd = .ended
                return total > 0 ? .received(total) : .ended
            case .failed(let error):
                knownEnd = .failed(.tls(error))
                return total > 0 ? .received(total) : .failed(.tls(error))
            }
        } while buffer.free > 0 && holdsBytes
        return .received(total)
    }

    /// Writes the first `count` bytes of `buffer`, and consumes those taken.
    package func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        switch layer {
        case .plain: writePlain(count, from: &buffer)
        case .handshake: .blocked
        case .tls: writeTLS(count, from: &buffer)
        }
    }

    private func writePlain(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        var left = count
        while left > 0 {
            let sent = send(raw, buffer.unread.baseAddress, left, CInt(MSG_NOSIGNAL))
            if sent >= 0 {
                buffer.consume(sent)
                left -= sent
            } else if errno == EAGAIN {
                wantsWrite = true
                return .blocked
            } else if errno != EINTR {
                return failedToWrite(errno)
            }
        }
        return .done
    }

    private func writeTLS(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        var left = count
        while left > 0 {
            switch tls!.write(UnsafeRawBufferPointer(rebasing: buffer.unread[..<left])) {
            case .complete(let sent):
                buffer.consume(sent)
                left -= sent
            case .wantsRead, .wantsWrite:
                wantsWrite = true
                return .blocked
            case .closed:
                return .failed(.socket(EPIPE))
            case .failed(let error):
                return .failed(.tls(error))
            }
        }
        return .done
    }

    // MARK: Without copies

    /// Reads into an empty pipe. Only in the clear.
    package func read(into pipe: inout SplicePipe) -> ReadOutcome {
        let count = pipe.take(from: raw)
        if count > 0 { return .received(count) }
        if count == 0 { return knownEnd ?? .ended }
        return errno == EAGAIN || errno == EINTR ? .blocked : .failed(.socket(errno))
    }

    package func write(from pipe: inout SplicePipe) -> WriteOutcome {
        while pipe.held > 0 {
            if pipe.give(to: raw) > 0 { continue }
            if errno == EAGAIN {
                wantsWrite = true
                return .blocked
            }
            if errno != EINTR { return failedToWrite(errno) }
        }
        return .done
    }

    private func failedToWrite(_ code: CInt) -> WriteOutcome {
        // The kernel reports a reset once; later reads find earlier data, and an apparently good end.
        if code == ECONNRESET { knownEnd = .failed(.socket(ECONNRESET)) }
        return .failed(.socket(code))
    }

    /// Releases memory between messages.
    package func releaseBuffers() {
        if layer == .tls { tls!.releaseBuffers() }
    }

    // MARK: Ending

    /// Ends this side: close_notify under TLS, and FIN. The other side may continue.
    package func endWriting() {
        if layer == .tls, case .wantsWrite = tls!.shutdown() {
            endsWhenWritable = true
            wantsWrite = true
            return
        }
        Glibc.shutdown(raw, CInt(SHUT_WR))
    }

    /// Ends this side without close_notify, so that under TLS a truncated message can't look complete.
    package func endAbruptly() {
        Glibc.shutdown(raw, CInt(SHUT_WR))
    }

    /// Bytes written that the peer's kernel has not confirmed.
    package var unconfirmed: Int {
        var count: CInt = 0
        return ioctl(raw, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// Sends close_notify, which distinguishes the end from a truncation; nothing in the clear.
    package func sayGoodbye() {
        if layer == .tls { _ = tls?.shutdown() }
    }

    /// Called once by ``abort()``, for socket pairs, which know no reset.
    package var aborted: (() -> Void)?

    /// Resets the connection, so that what was sent doesn't look complete.
    package func abort() {
        let aborted = aborted
        self.aborted = nil
        defer { aborted?() }
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(raw, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        stop()
    }

    /// Ends all calls to the owner. The socket closes with the last reference.
    package func stop() {
        owner = nil
        source?.invalidate()
        source = nil
    }

    /// Whether the peer of an idle connection ended it or sent something; one system call.
    package var isStale: Bool {
        var byte: UInt8 = 0
        let count = recv(raw, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
        return count >= 0 || errno != EAGAIN
    }

    /// Acknowledges what has arrived (TCP_QUICKACK of tcp(7)), up to 40 ms sooner, for peers that send in pieces.
    package func confirmNow() {
        var on: CInt = 1
        setsockopt(raw, CInt(IPPROTO_TCP), TCP_QUICKACK, &on, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Probes a silent peer, for tunnels: first after `idle` seconds, then three times ten seconds apart.
    package func probeWhenSilent(for idle: Int) {
        func set(_ level: CInt, _ option: CInt, _ value: Int) {
            var value = CInt(clamping: value)
            setsockopt(raw, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
        }
        set(SOL_SOCKET, SO_KEEPALIVE, 1)
        set(CInt(IPPROTO_TCP), TCP_KEEPIDLE, max(1, idle))
        set(CInt(IPPROTO_TCP), TCP_KEEPINTVL, 10)
        set(CInt(IPPROTO_TCP), TCP_KEEPCNT, 3)
    }

    /// Marks all later packets (DSCP, RFC 2474).
    package func mark(_ dscp: UInt8) { Socket.mark(raw, dscp) }

    // MARK: Events

    private var handshakeWants = Readiness.read
    private var readWaitsForWrite = false
    /// The peer's close_notify, or a failure, known before the good bytes were read.
    // Stored whole.
    @exclusivity(unchecked) private var knownEnd: ReadOutcome?
    /// close_notify and FIN wait for room.
    private var endsWhenWritable = false

    private func updateInterest() {
        guard let source else { return }
        if layer == .handshake {
            source.wantsRead = handshakeWants == .read
            source.wantsWrite = handshakeWants == .write
        } else {
            source.wantsRead = wantsRead
            source.wantsWrite = wantsWrite
        }
    }

    package func socketReady(_ readiness: Readiness) {
        if layer == .handshake { return continueHandshake() }
        // Retained for this call. If it sets another owner, that one gets the next event.
        guard let owner else { return }
        if readiness.contains(.write) {
            wantsWrite = false
            if endsWhenWritable {
                endsWhenWritable = false
                endWriting()
            }
            if readWaitsForWrite {
                readWaitsForWrite = false
                owner.streamIsReadable(self)
                guard self.owner === owner else { return }
            }
            owner.streamIsWritable(self)
        } else if wantsRead {
            owner.streamIsReadable(self)
        }
    }

    private func continueHandshake() {
        switch tls!.handshake() {
        case .wantsRead: handshakeWaits(for: .read)
        case .wantsWrite: handshakeWaits(for: .write)
        case .complete: handshakeEnded(.success(()))
        case .closed: handshakeEnded(.failure(.socket(ECONNRESET)))
        case .failed(let error): handshakeEnded(.failure(.tls(error)))
        }
    }

    private func handshakeWaits(for readiness: Readiness) {
        handshakeWants = readiness
        updateInterest()
    }

    private func handshakeEnded(_ result: Result<Void, StreamError>) {
        layer = .tls
        updateInterest()
        owner?.streamDidSecure(self, result)
    }
}
