import CPinproxyOpenSSL
import CPinproxyShims

/// A growing memory BIO: where OpenSSL prints to, and reads PEM from.
struct MemoryBIO: ~Copyable {
    let pointer: OpaquePointer

    init() {
        guard let bio = BIO_new(BIO_s_mem()) else { preconditionFailure("out of memory") }
        pointer = bio
    }

    init(_ bytes: [UInt8]) {
        self.init()
        let written = bytes.withUnsafeBytes { BIO_write(pointer, $0.baseAddress, CInt(clamping: $0.count)) }
        precondition(bytes.isEmpty || written == bytes.count, "out of memory")
    }

    deinit { BIO_free_all(pointer) }

    var bytes: [UInt8] {
        var start: UnsafeMutablePointer<CChar>?
        let count = Int(shim_BIO_get_mem_data(pointer, &start))
        guard let start, count > 0 else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }
}
