internal import CPinproxyShims
internal import Glibc

/// Copies the entries of a directory into another that will cover it.
final class DirectoryCopy {
    private static let limit = 8192
    /// The path of the covered directory within the covering one.
    private static let original = ".original"

    /// Without entries that another cover added for itself.
    let names: Set<String>
    private let path: String
    private let descriptor: CInt

    init(of path: String) throws(MountError) {
        let raw = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw MountError(at: path) }
        do throws(MountError) {
            names = try Self.names(in: raw, path)
        } catch {
            close(raw)
            throw error
        }
        self.path = path
        descriptor = raw
    }

    private static func names(in descriptor: CInt, _ path: String) throws(MountError) -> Set<String> {
        guard let list = fdopendir(dup(descriptor)) else { throw MountError(at: path) }
        defer { closedir(list) }
        var names: Set<String> = []
        while let entry = readdir(list) {
            names.insert(withUnsafePointer(to: &entry.pointee.d_name.0) { String(cString: $0) })
            guard names.count <= limit else {
                errno = E2BIG
                throw MountError(at: path)
            }
        }
        return names.subtracting([".", "..", original])
    }

    deinit { close(descriptor) }

    /// Makes the entries in an empty directory: copies of links, and links to the original for all else.
    func fill(_ directory: String) throws(MountError) {
        let original = "\(directory)/\(Self.original)"
        guard mkdir(original, 0o755) == 0 else { throw MountError(at: original) }
        try Mount.bind(path, to: original)
        for name in names {
            let target = link(name) ?? "\(Self.original)/\(name)"
            guard symlink(target, "\(directory)/\(name)") == 0 else { throw MountError(at: "\(directory)/\(name)") }
        }
    }

    /// Nil: it is not a link.
    private func link(_ name: String) -> String? {
        var text = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlinkat(descriptor, name, &text, text.count)
        return length > 0 ? String(decoding: text[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }
}
