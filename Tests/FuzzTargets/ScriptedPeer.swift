internal import Glibc
import PinproxyHTTP2
import PinproxyTLS

/// One end of a socket, with the data that it will send.
final class ScriptedPeer {
    /// What precedes the script, to get TLS inside a CONNECT.
    enum Opening {
        case none
        /// Requests a tunnel, then begins TLS and offers these protocols.
        case client(TLSClientContext, host: String, protocols: [String])
        /// Allows the tunnel, then accepts TLS.
        case origin(TLSServerContext)
    }

    let descriptor: CInt
    private var opening: Opening
    private var script: [UInt8]
    private var sent = 0
    private(set) var received: [UInt8] = []
    private var tls: TLSConnection?
    /// Nil: it speaks HTTP/1.1.
    private var frames: SentFrames?
    private var isSecured = false
    /// The handshake needs bytes from the other side.
    private var awaitsHandshake = false
    private var isClosed = false
    /// Increases with every byte sent or received, and when something is closed.
    private(set) var moved = 0

    init(_ descriptor: CInt, _ opening: Opening, script: [UInt8]) {
        self.descriptor = descriptor
        self.opening = opening
        self.script = script
        if case .client(_, let host, _) = opening { say("CONNECT \(host):443 HTTP/1.1\r\nHost: \(host):443\r\n\r\n") }
    }

    private func say(_ text: String) {
        let bytes = Array(text.utf8)
        Glibc.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
    }

    /// Whether it has sent its script, or can't.
    var isDone: Bool { isReady && (isClosed || sent == script.count) }
    /// Whether the script may be sent.
    var isReady: Bool { if case .none = opening { true } else { false } }
    private var isClient: Bool { if case .client = opening { true } else { false } }

    func send(_ count: Int) {
        guard isReady, !isDone else { return }
        let count = min(count, script.count - sent)
        let written = script[sent...].withUnsafeBytes { bytes -> Int? in
            let bytes = UnsafeRawBufferPointer(rebasing: bytes[..<count])
            if isSecured { return tls?.write(bytes).count }
            let written = Glibc.send(descriptor, bytes.baseAddress, count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
            return written > 0 ? written : errno == EAGAIN ? 0 : nil
        }
        moved += written ?? 1
        if let written { sent += written } else { sent = script.count }
    }

    func receive() {
        guard !isClosed else { return }
        open()
        guard isReady else { return }
        withUnsafeTemporaryAllocation(byteCount: 16384, alignment: 1) { piece in
            while let count = isSecured ? receiveSecured(piece) : receivePlain(piece), count > 0 {
                moved += count
                received += piece[..<count]
                frames?.take(Array(piece[..<count]))
            }
        }
    }

    /// Skips reads without input: OpenSSL allocates 66 KB for each.
    private func receiveSecured(_ piece: UnsafeMutableRawBufferPointer) -> Int? {
        guard tls?.hasPending == true || hasArrived else { return nil }
        return tls?.read(into: piece).count
    }

    private var hasArrived: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, CInt(MSG_DONTWAIT) | CInt(MSG_PEEK)) >= 0 || errno != EAGAIN
    }

    /// Whether the peer has sent a request, or a response.
    var hasHead: Bool { frames.map { $0.heads > 0 } ?? !received.isEmpty }
    var speaksHTTP2: Bool { frames != nil }

    private func receivePlain(_ piece: UnsafeMutableRawBufferPointer) -> Int {
        recv(descriptor, piece.baseAddress, piece.count, CInt(MSG_DONTWAIT))
    }

    /// Advances the opening by a step.
    private func open() {
        if isReady { return }
        if tls == nil {
            withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { piece in
                let count = receivePlain(piece)
                moved += max(count, 0)
                if count > 0 { received += piece[..<count] } else if count == 0 || errno != EAGAIN { giveUp() }
            }
            guard received.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return }
            switch opening {
            case .none: return
            case .client(let context, let host, let protocols):
                guard received.starts(with: "HTTP/1.1 200 ".utf8) else { return giveUp() }
                tls = try? TLSConnection(
                    client: context, descriptor: descriptor, serverName: .dns(host), applicationProtocols: protocols,
                    verify: { _ in .accept })
            case .origin(let context):
                say("HTTP/1.1 200 OK\r\n\r\n")
                tls = try? TLSConnection(server: context, descriptor: descriptor, ticketContext: Array("fuzz".utf8))
            }
            received = []
        }
        if awaitsHandshake, !hasArrived { return }
        let result = tls?.handshake()
        awaitsHandshake = false
        moved += 1
        switch result {
        case .complete?:
            isSecured = true
            if tls?.alpn == "h2" {
                // A connection preface (RFC 9113 section 3.4) is hardly found by chance.
                script = HTTP2Sessions.beginning(isClient ? .server : .client) + script
                frames = SentFrames(isClient ? .server : .client)
            }
            opening = .none
        case .wantsRead?: awaitsHandshake = true
        case .wantsWrite?: break
        case .closed?, .failed?, nil: giveUp()
        }
    }

    private func giveUp() {
        opening = .none
        sent = script.count
    }

    /// - Parameter how: keep it open, end this side, close, or reset.
    func end(_ how: UInt8) {
        guard !isClosed else { return }
        switch how {
        case 0: break
        case 1:
            if isSecured { _ = tls?.shutdown() }
            shutdown(descriptor, CInt(SHUT_WR))
        case 2: close()
        default:
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            close()
        }
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        tls = nil
        Glibc.close(descriptor)
    }
}

extension TLSResult<Int> {
    /// Nil: nothing further moves in that direction.
    fileprivate var count: Int? {
        switch self {
        case .complete(let count): count
        case .wantsRead, .wantsWrite: 0
        case .closed, .failed: nil
        }
    }
}
