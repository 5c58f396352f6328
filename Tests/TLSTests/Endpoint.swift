@testable import PinproxyTLS

/// A connection behind a reference, because `#expect` copies what it looks at.
final class Endpoint {
    private var connection: TLSConnection
    private let lent = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

    init(_ connection: consuming TLSConnection) { self.connection = connection }

    deinit { lent.deallocate() }

    var version: TLSVersion { connection.version }
    var cipherName: String { connection.cipherName }
    var groupName: String? { connection.groupName }
    var alpn: String? { connection.alpn }
    var isResumed: Bool { connection.isResumed }
    var hasPending: Bool { connection.hasPending }
    var clientServerName: String? { connection.clientServerName }
    var peerChain: PresentedChain? { connection.peerChain }

    func readAhead() { connection.readAhead() }
    func handshake() -> Outcome<Void> { Outcome(connection.handshake()) }
    func shutdown() -> Outcome<Void> { Outcome(connection.shutdown()) }
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome<Int> {
        connection.lend(lent)
        defer { connection.takeBackMemory() }
        return Outcome(connection.read(into: buffer))
    }
    func write(_ bytes: UnsafeRawBufferPointer) -> Outcome<Int> { Outcome(connection.write(bytes)) }

    /// One read as text.
    func receive(atMost count: Int = 1 << 14) -> Outcome<String> {
        var bytes = [UInt8](repeating: 0, count: count)
        return switch bytes.withUnsafeMutableBytes({ read(into: $0) }) {
        case .complete(let count): .complete(String(decoding: bytes.prefix(count), as: UTF8.self))
        case .wantsRead: .wantsRead
        case .wantsWrite: .wantsWrite
        case .closed: .closed
        case .failed(let kind, let message): .failed(kind, message)
        }
    }

    /// One write of text; the bytes taken, or nil if it did not complete.
    func send(_ text: String) -> Int? {
        let bytes = Array(text.utf8)
        return if case .complete(let count) = bytes.withUnsafeBytes({ write($0) }) { count } else { nil }
    }
}

/// A result that tests can compare.
enum Outcome<Value> {
    case complete(Value)
    case wantsRead, wantsWrite, closed
    case failed(TLSError.Kind, String)

    init(_ result: TLSResult<Value>) {
        switch result {
        case .complete(let value): self = .complete(value)
        case .wantsRead: self = .wantsRead
        case .wantsWrite: self = .wantsWrite
        case .closed: self = .closed
        case .failed(let error): self = .failed(error.kind, error.message)
        }
    }

    var isPending: Bool {
        switch self {
        case .wantsRead, .wantsWrite: true
        default: false
        }
    }
    var kind: TLSError.Kind? { if case .failed(let kind, _) = self { kind } else { nil } }
    var message: String? { if case .failed(_, let message) = self { message } else { nil } }

    /// The value of a complete result.
    @discardableResult
    func get() throws -> Value {
        guard case .complete(let value) = self else { throw NotComplete(text: "\(self)") }
        return value
    }

    struct NotComplete: Error { let text: String }
}

extension Outcome: Equatable where Value: Equatable {}
