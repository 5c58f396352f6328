import CPinproxyShims
import Glibc
package import PinproxyTLS

package enum FilePlace: Sendable, Hashable {
    /// A path of an administrator's choice: links are followed.
    case named(String)
    case kept(String, in: TrustedDirectory)

    /// - Parameter own: the proxy's own directory, if any.
    package init(_ path: String, own: TrustedDirectory?) {
        guard let own, path.hasPrefix(own.path + "/") else {
            self = .named(path)
            return
        }
        let name = String(path.dropFirst(own.path.count + 1))
        self = name.split(separator: "/").contains("..") ? .named(path) : .kept(name, in: own)
    }

    package func read() throws(FileProblem) -> SmallFile {
        switch self {
        case .named(let path):
            do throws(FileProblem) {
                return try SmallFile.read(path)
            } catch .system(let code) {
                throw ServiceCredential.absence(path, code).map { .noCredential($0) } ?? .system(code)
            }
        case .kept(let name, let directory): return try directory.read(name)
        }
    }

    func write(_ bytes: [UInt8], mode: UInt32) throws(FileProblem) {
        switch self {
        case .named(let path): try NewFile.write(bytes, to: path, mode: mode)
        case .kept(let name, let directory): try directory.write(bytes, to: name, mode: mode)
        }
    }

    func remove() throws(FileProblem) {
        switch self {
        case .named(let path):
            guard unlink(path) == 0 || errno == ENOENT else { throw .system(errno) }
        case .kept(let name, let directory):
            guard try directory.has(name) else { return }
            guard directory.remove(name) else { throw .system(errno) }
        }
    }

    /// Whether the name exists, dangling links included.
    func isThere() throws(FileProblem) -> Bool {
        switch self {
        case .named(let path):
            var status = stat()
            return lstat(path, &status) == 0
        case .kept(let name, let directory): return try directory.has(name)
        }
    }

    /// Makes missing directories for this user alone; the proxy's own can be listed by others.
    func createFolder() throws(FileProblem) {
        switch self {
        case .named(let path): try NewFile.makeDirectory(of: path)
        case .kept(let name, let directory):
            try directory.createFolder(name.split(separator: "/").dropLast().joined(separator: "/"), mode: 0o700)
        }
    }

    func lock() throws(FileProblem) -> FileLock {
        switch self {
        case .named(let path):
            let directory = Glibc.open(NewFile.directory(of: path), shim_O_PATH | O_DIRECTORY | O_CLOEXEC)
            guard directory >= 0 else { throw .system(errno) }
            defer { close(directory) }
            return try FileLock(String(path.split(separator: "/").last ?? "") + ".lock", in: directory)
        case .kept(let name, let directory): return try directory.lock(name + ".lock")
        }
    }
}
