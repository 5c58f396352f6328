internal import Glibc
internal import PinproxySecurity
internal import PinproxyTLS

/// Reads files, with human-readable reasons.
enum FileContents {
    /// More than any file of the configuration needs: 100,000 hosts have about 20 MB.
    static let limit = 128 << 20

    static func read(_ path: String, limit: Int = limit) -> Result<[UInt8], Reason> {
        do throws(FileProblem) {
            return .success(try SmallFile.read(path, limit: limit).bytes)
        } catch .tooLarge {
            return .failure(Reason("it is longer than \(Quantity.text(bytes: limit))"))
        } catch .notAFile where access("\(path)/", F_OK) == 0 {
            return .failure(Reason(String(cString: strerror(EISDIR))))
        } catch .system(let code) {
            return .failure(Reason(reason(code, path)))
        } catch {
            return .failure(Reason("\(error)"))
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

    /// A number that changes with each write of the file, `touch` included; 0 if it is unknown.
    static func edition(_ path: String) -> Int {
        var status = stat()
        guard stat(path, &status) == 0 else { return 0 }
        return status.st_mtim.tv_sec &* 1_000_000_000 &+ status.st_mtim.tv_nsec
    }

    private static func reason(_ code: Int32, _ path: String) -> String {
        ServiceCredential.absence(path, code) ?? String(cString: strerror(code))
    }

    /// A path in a file: relative to that file's directory, or `credential:NAME`, which systemd hands over.
    static func resolve(_ path: String, relativeTo file: String) -> String {
        if path.hasPrefix(ServiceCredential.prefix) {
            return ServiceCredential.path(path.dropFirst(ServiceCredential.prefix.utf8.count))
        }
        guard !path.hasPrefix("/"), let slash = file.lastIndex(of: "/") else { return path }
        return file[...slash] + path
    }
}
