internal import CShims
internal import Glibc

/// The system's settings of ssh(1) that others include: it takes such a file from root or its user alone, and in a
/// namespace of users root's files seem to be nobody's.
enum SSHSettings {
    private static let directory = "/etc/ssh/ssh_config.d"
    /// Included from there on Fedora.
    private static let policy = "/etc/crypto-policies/back-ends/openssh.config"
    private static let limit = 64 << 10

    /// Puts copies that are the user's own in their place.
    static func cover() throws(MountError) {
        var status = stat()
        guard stat(directory, &status) == 0, status.st_uid != 0, status.st_uid != geteuid() else { return }
        let texts = try DirectoryCopy(of: directory).names.filter { $0.hasSuffix(".conf") }
            .compactMap { name in read("\(directory)/\(name)").map { (name: name, text: $0) } }
        guard !texts.isEmpty else { return }
        let policy = read(policy)
        try Mount.memory(at: directory)
        for (name, text) in texts { try DirectoryCopy.write(text, to: "\(directory)/\(name)") }
        if let policy {
            let copy = "\(directory)/.policy"
            try DirectoryCopy.write(policy, to: copy)
            for file in SystemTrust.real([Self.policy]) { try Mount.bind(copy, to: file) }
        }
        try Mount.protect(directory)
    }

    private static func read(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = Glibc.read(file, &bytes, bytes.count)
        return count >= 0 && count < limit ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
