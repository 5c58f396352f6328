internal import Glibc
internal import Security

/// Reading of files, with reasons for people.
enum FileContents {
    /// More than any file of the configuration needs: 100,000 hosts have about 20 MB.
    static let limit = 128 << 20

    static func read(_ path: String, limit: Int = limit) -> Result<[UInt8], Reason> {
        // Opened so that a pipe which nobody writes to isn't waited for: a reload would stop the proxy.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return .failure(Reason(reason(errno, path))) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return .failure(Reason(String(cString: strerror(errno)))) }
        // Of a directory the read below says that it is one.
        guard [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else { return .failure(Reason("not a regular file")) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .failure(Reason(String(cString: strerror(errno)))) }
            if count == 0 { return .success(bytes) }
            bytes += buffer[..<count]
            guard bytes.count <= limit else {
                return .failure(Reason("it is longer than \(Quantity.text(bytes: limit))"))
            }
        }
    }

    /// Why a file that is read later could not be read now; nil if it could.
    static func reasonAgainstReading(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return reason(errno, path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return String(cString: strerror(errno)) }
        return status.st_mode & S_IFMT == S_IFREG ? nil : "not a regular file"
    }

    /// Another number after each time that the file was written, `touch` included; 0 if it can't be asked.
    static func edition(_ path: String) -> Int {
        var status = stat()
        guard stat(path, &status) == 0 else { return 0 }
        return status.st_mtim.tv_sec &* 1_000_000_000 &+ status.st_mtim.tv_nsec
    }

    private static func reason(_ code: Int32, _ path: String) -> String {
        ServiceCredential.absence(path, code) ?? String(cString: strerror(code))
    }

    /// A path as written in a file: relative ones are relative to that file's directory, and `credential:NAME` is what
    /// systemd hands over.
    static func resolve(_ path: String, relativeTo file: String) -> String {
        if path.hasPrefix(ServiceCredential.prefix) {
            return ServiceCredential.path(path.dropFirst(ServiceCredential.prefix.utf8.count))
        }
        guard !path.hasPrefix("/"), let slash = file.lastIndex(of: "/") else { return path }
        return file[...slash] + path
    }
}
