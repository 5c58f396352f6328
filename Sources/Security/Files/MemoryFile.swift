import CPinproxyShims
import Glibc
package import PinproxyTLS

/// A file in memory, for libraries that read by path.
package enum MemoryFile {
    /// - Returns: a descriptor that the caller closes. Its path is `/proc/self/fd/NUMBER`.
    package static func make(_ bytes: [UInt8]) throws(FileProblem) -> CInt {
        let descriptor = memfd_create("pinproxy", shim_MFD_CLOEXEC)
        guard descriptor >= 0 else { throw .system(errno) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let code = errno
                close(descriptor)
                throw .system(code)
            }
            rest = rest.dropFirst(count)
        }
        return descriptor
    }
}
