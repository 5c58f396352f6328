import Foundation
import PinproxyEventLoop
import PinproxyTLS
import PinproxyTestAuthority
import Testing

/// A listener on loopback, and a thread that serves its connections one after another with blocking calls.
final class Peer: Sendable {
    let port: UInt16
    private let listener: CInt

    init(_ serve: @escaping @Sendable (CInt) -> Void) throws {
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        let listener = try Socket.listen(on: any, backlog: 16, reusePort: false).release()
        self.listener = listener
        port = try #require(Socket.localAddress(listener)).port
        _ = fcntl(listener, F_SETFL, 0)
        Thread.detachNewThread {
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                serve(connection)
                close(connection)
            }
            close(listener)
        }
    }

    deinit {
        shutdown(listener, CInt(SHUT_RDWR))
    }
}

/// Reads until the peer ends or resets the connection, and returns everything.
@discardableResult func readToEnd(_ descriptor: CInt) -> String {
    var text = ""
    var bytes = [UInt8](repeating: 0, count: 4096)
    while case let count = read(descriptor, &bytes, bytes.count), count > 0 {
        text += String(decoding: bytes[..<count], as: UTF8.self)
    }
    return text
}

func readHead(_ descriptor: CInt) -> String {
    var text = ""
    var byte: UInt8 = 0
    while !text.hasSuffix("\r\n\r\n"), read(descriptor, &byte, 1) == 1 {
        text += String(decoding: [byte], as: UTF8.self)
    }
    return text
}

func say(_ text: String, to descriptor: CInt) {
    let bytes = Array(text.utf8)
    _ = send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
}

/// An origin's certificate, with what is needed to serve and to trust it.
struct OriginAuthority: Sendable {
    let anchors: TrustAnchors
    let identity: Identity
    private let root: HeldCertificate

    static let shared = Result { try OriginAuthority() }

    init() throws {
        let root = try HeldCertificate.root()
        let leaf = try root.issue(.leaf("api.test").with { $0.serial = [0x0A, 0xBC] })
        self.root = root
        anchors = TrustAnchors([try Certificate(der: root.der)])
        identity = try Identity(
            chain: leaf.chain.map { try Certificate(der: $0.der) }, key: PrivateKey(pem: Array(leaf.keyPEM.utf8)))
    }

    /// Revocation lists that contain the leaf.
    func revokingLists() throws -> RevocationLists {
        let template = RevocationListTemplate().with {
            $0.revoked = [([0x0A, 0xBC], CertificateTemplate.now - 1, nil)]
        }
        let file = FileManager.default.temporaryDirectory.appending(path: "pinproxy-\(UUID().uuidString).crl")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(root.revocationList(template)).write(to: file)
        return try RevocationLists.load([file.path(percentEncoded: false)])
    }

    static func context(_ versions: ClosedRange<TLSVersion> = .tls12 ... .tls13) throws -> TLSServerContext {
        var options = TLSServerContext.Options()
        options.versions = versions
        return try TLSServerContext(options: options)
    }

    /// Makes a handshake, sends `greeting` and waits until the client closes. False: no handshake.
    @discardableResult func serve(_ descriptor: CInt, with context: TLSServerContext, greeting: String = "x") -> Bool {
        guard
            var connection = try? TLSConnection(
                server: context, descriptor: descriptor, identity: identity, ticketContext: [1])
        else { return false }
        guard case .complete = connection.handshake() else { return false }
        var greeting = greeting
        let sent = greeting.withUTF8 { connection.write(UnsafeRawBufferPointer($0)) }
        guard case .complete = sent else { return false }
        var bytes = [UInt8](repeating: 0, count: 256)
        while case .complete = bytes.withUnsafeMutableBytes({ connection.read(into: $0) }) {}
        return true
    }
}

/// Passes one value at a time to another thread, which waits for it.
final class Mailbox<Value: Sendable>: @unchecked Sendable {
    private let isThere = DispatchSemaphore(value: 0)
    private let lock = NSLock()
    private var values: [Value] = []

    func put(_ value: Value) {
        lock.withLock { values.append(value) }
        isThere.signal()
    }

    func take() -> Value {
        isThere.wait()
        return lock.withLock { values.removeFirst() }
    }
}
