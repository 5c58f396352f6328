import CPinproxyOpenSSL
import Glibc

/// The source of OpenSSL's records: a socket, read into the caller's memory, so that one system call brings many
/// records. If OpenSSL reads ahead itself, it moves all that is left to the front of its buffer for each record.
///
/// Without such memory, bytes go from the socket to OpenSSL.
final class RecordInput {
    private let descriptor: CInt
    private var lent: UnsafeMutableRawBufferPointer?
    /// Bytes that OpenSSL hasn't taken, in the caller's memory or in `kept`.
    private var unread = UnsafeRawBufferPointer(start: nil, count: 0)
    /// A copy of what was left when the caller took its memory back.
    private var kept: UnsafeMutableRawPointer?
    private var hasEnded = false

    /// - Parameter descriptor: outlives this object.
    init(_ descriptor: CInt) { self.descriptor = descriptor }

    deinit { kept?.deallocate() }

    var isEmpty: Bool { unread.isEmpty }

    /// Puts bytes that were read from the socket already before the others. Called once, before anything is read.
    func readFirst(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { keep($0) } }

    /// - Parameter memory: stays until ``takeBack()``.
    func lend(_ memory: UnsafeMutableRawBufferPointer) { lent = memory }

    func takeBack() {
        lent = nil
        if kept == nil, !unread.isEmpty { keep(unread) }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        copy.copyMemory(from: bytes)
        kept = copy.baseAddress
        unread = UnsafeRawBufferPointer(copy)
    }

    /// As read(2).
    fileprivate func read(into out: UnsafeMutableRawPointer, _ count: Int) -> Int {
        if unread.isEmpty {
            kept?.deallocate()
            kept = nil
            guard let lent else { return receive(out, count) }
            let received = receive(lent.baseAddress, lent.count)
            guard received > 0 else { return received }
            unread = UnsafeRawBufferPointer(rebasing: lent[..<received])
        }
        let taken = min(count, unread.count)
        out.copyMemory(from: unread.baseAddress!, byteCount: taken)
        unread = UnsafeRawBufferPointer(rebasing: unread[taken...])
        return taken
    }

    private func receive(_ out: UnsafeMutableRawPointer?, _ count: Int) -> Int {
        let received = recv(descriptor, out, count, 0)
        hasEnded = received == 0
        return received
    }

    // MARK: The BIO

    /// A BIO that reads from this object, which must outlive it; nil: memory is exhausted.
    func makeBIO() -> OpaquePointer? {
        guard let method = RecordInputMethod.shared.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    fileprivate static func of(_ bio: OpaquePointer?) -> Unmanaged<RecordInput>? {
        BIO_get_data(bio).map { Unmanaged.fromOpaque($0) }
    }

    fileprivate func control(_ command: CInt) -> Int {
        switch command {
        case BIO_CTRL_EOF: hasEnded ? 1 : 0
        case BIO_CTRL_PENDING: unread.count
        case BIO_CTRL_FLUSH: 1
        default: 0
        }
    }
}

private struct RecordInputMethod: @unchecked Sendable {
    // Never changed after its creation.
    static let shared = RecordInputMethod()

    let pointer: OpaquePointer?

    private init() {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "records") else {
            pointer = nil
            return
        }
        BIO_meth_set_read_ex(method) { bio, out, count, taken in
            guard let bio, let out, let taken, let input = RecordInput.of(bio) else { return 0 }
            let read = input._withUnsafeGuaranteedRef { $0.read(into: UnsafeMutableRawPointer(out), count) }
            taken.pointee = max(0, read)
            if read > 0 { return 1 }
            let code = errno
            BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            if read < 0, code == EAGAIN || code == EINTR {
                BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            }
            errno = code
            return CInt(read)
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            RecordInput.of(bio)?._withUnsafeGuaranteedRef { $0.control(command) } ?? 0
        }
        pointer = method
    }
}
