import Glibc

/// A regular file, read whole through one descriptor, with its owner and mode.
package struct SmallFile {
    /// More than any bundle of certificates; stops at logs or disk images given by mistake.
    package static let limit = 4 << 20

    package let bytes: [UInt8]
    package let owner: UInt32
    /// Permission bits, e.g. 0o600.
    package let mode: UInt32

    /// Doesn't wait for a pipe's writer.
    package static func read(_ path: String, limit: Int = limit) throws(FileProblem) -> SmallFile {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .system(errno) }
        defer { close(descriptor) }
        return try read(descriptor, limit: limit)
    }

    /// - Parameter descriptor: stays the caller's.
    package static func read(_ descriptor: CInt, limit: Int) throws(FileProblem) -> SmallFile {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(max(0, min(Int(status.st_size), limit)))
        var part = [UInt8](repeating: 0, count: 16384)
        while true {
            let count = Glibc.read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .system(errno) }
            if count == 0 { break }
            bytes += part[..<count]
            guard bytes.count <= limit else { throw .tooLarge(limit) }
        }
        return SmallFile(bytes: bytes, owner: status.st_uid, mode: status.st_mode & 0o7777)
    }
}

package enum FileProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// A system call failed with this `errno`.
    case system(Int32)
    /// systemd has not passed the credential; in words.
    case noCredential(String)
    /// Another user owns it, can write it, or replaced it by a link; in words.
    case untrusted(String)
    /// A directory, a device, a pipe.
    case notAFile
    case tooLarge(Int)

    /// The file was reached, but is unsuitable.
    package var isOfContents: Bool {
        switch self {
        case .system, .noCredential, .untrusted: false
        case .notAFile, .tooLarge: true
        }
    }

    package var description: String {
        switch self {
        case .system(let code): String(cString: strerror(code))
        case .noCredential(let text), .untrusted(let text): text
        case .notAFile: "not a regular file"
        case .tooLarge(let limit):
            "larger than \(limit >> 20) MiB\(limit == SmallFile.limit ? ", so not a certificate or key" : "")"
        }
    }
}
