internal import PinproxyEventLoop
internal import PinproxyHTTPWire

/// The first bytes of a program without proxy support, a TLS hello or an HTTP/1 request, which name the host.
struct Opening {
    enum Progress: Equatable {
        case incomplete
        case wants(Authority)
        case refused(DoorRefusal, answer: [UInt8])
    }

    private static let headLimit = 64 << 10

    let meant: SocketAddress
    let isTLS: Bool
    private var parser = HeadParser(limit: Opening.headLimit)
    private var head = RequestHead()

    init(at meant: SocketAddress, isTLS: Bool) {
        self.meant = meant
        self.isTLS = isTLS
    }

    /// - Parameter bytes: all received so far.
    mutating func read(_ bytes: Span<UInt8>) -> Progress {
        isTLS ? readHello(bytes) : readHead(bytes)
    }

    // MARK: TLS

    private func readHello(_ bytes: Span<UInt8>) -> Progress {
        switch ClientHello.peek(bytes) {
        case .incomplete: return .incomplete
        case .notTLS: return refused(nil, "to port 443 only TLS can be let through, and something else came")
        case .malformed: return refused(nil, "its TLS hello is malformed")
        case .complete(let hello):
            guard let name = hello.serverName else {
                return refused(
                    nil,
                    """
                    its TLS hello names no host (SNI), so the pins that apply are unknown; make it use \
                    HTTPS_PROXY
                    """
                )
            }
            guard let authority = Self.authority(named: name, onPort: meant.port) else {
                return refused(nil, "its TLS hello names \(ShownText(name)), which is not a host on port \(meant.port)")
            }
            return .wants(authority)
        }
    }

    /// Some programs put an address there, or a port after the name.
    private static func authority(named name: String, onPort port: UInt16) -> Authority? {
        let isIPv6 = name.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !name.hasPrefix("[")
        guard case .success(let authority) = Authority.parse(isIPv6 ? "[\(name)]" : name, defaultPort: port),
            authority.port == port
        else { return nil }
        return authority
    }

    // MARK: HTTP

    private mutating func readHead(_ bytes: Span<UInt8>) -> Progress {
        switch parser.parseRequest(bytes, into: &head) {
        case .incomplete: return .incomplete
        case .tooLarge, .tooManyFields: return refused(nil, "the head of its request is too large")
        case .malformed(let error): return refused(nil, "to port 80 only HTTP/1 can be let through: \(error.message)")
        case .complete: break
        }
        let range: ByteRange?
        switch head.targetForm {
        case .authority: return refused(nil, "it asks the origin at port 80 for a tunnel (CONNECT)")
        case .absolute(let target): range = target.scheme == .http ? target.authority : nil
        case .origin, .asterisk: range = head.host
        }
        guard let range else {
            return refused(
                nil, "its request names no host (Host), so the policy that applies is unknown; make it use HTTP_PROXY")
        }
        guard case .success(let authority) = Authority.parse(bytes.extracting(range.offsets), defaultPort: 80),
            authority.port == meant.port
        else {
            return refused(
                nil,
                "its request is for \(ShownText(range.text(in: bytes))), which is not a host on port \(meant.port)")
        }
        return .wants(authority)
    }

    /// The length of the read head, and the proxy's version of it, for this one request on the connection.
    func request(
        to authority: Authority, from bytes: Span<UInt8>, credentials: String?
    ) -> (length: Int, bytes: [UInt8]) {
        var edits = HeadEdits()
        if !head.wantsUpgrade { edits.append(.set("close"), "Connection") }
        if let credentials { edits.append(.set(credentials), "Proxy-Authorization") }
        var out: [UInt8] = []
        HeadWriter.write(
            request: head, from: bytes, target: .absoluteForm, authority: authority, defaultPort: 80, via: nil,
            forwardUpgrade: true,
            edits: edits, into: &out)
        return (Int(head.length), out)
    }

    // MARK: Refusals

    /// - Parameter wanted: the host that the program wants, if known.
    func refused(_ wanted: Authority?, _ cause: String) -> Progress {
        let host = wanted.map { $0.port == 443 && !$0.isIPv6 ? $0.host : "\($0)" } ?? "\(meant)"
        return .refused(DoorRefusal(host: host, cause: cause), answer: answer(wanted, host, cause))
    }

    private func answer(_ wanted: Authority?, _ host: String, _ cause: String) -> [UInt8] {
        // RFC 8446 section 6.2: unrecognized_name, or access_denied.
        if isTLS { return Self.alert(112) }
        let text = "pinproxy: \(host): \(cause)\n"
        let status = wanted == nil ? "400 Bad Request" : "421 Misdirected Request"
        return Array(
            ("HTTP/1.1 \(status)\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: \(text.utf8.count)\r\n"
                + "Cache-Control: no-store\r\nConnection: close\r\n\r\n\(text)").utf8)
    }

    /// The alert after the proxy has refused the host. The proxy reports the reason itself.
    static let denied = alert(49)

    /// A fatal alert, in a record.
    private static func alert(_ code: UInt8) -> [UInt8] { [21, 3, 3, 0, 2, 2, code] }
}

/// Why the door refused a connection, in human-readable form. The texts may hold anything that a program sent.
package struct DoorRefusal: Sendable, Hashable {
    package let host: String
    package let cause: String
}
