internal import CPinproxyShims
internal import Glibc

/// The system's settings of ssh(1) in included files. It accepts such a file only from root or its user, and in a user
/// namespace root's files appear to be nobody's.
enum SSHSettings {
    private static let directory = "/etc/ssh/ssh_config.d"
    /// Included by a file there on Fedora.
    private static let policy = "/etc/crypto-policies/back-ends/openssh.config"

    private static let limit = 64 << 10

    /// Covers them with copies that the user owns.
    static func cover() throws(MountError) {
        var status = stat()
        guard stat(directory, &status) == 0, status.st_uid != 0, status.st_uid != geteuid() else { return }
        let texts = try DirectoryCopy(of: directory).names.filter { $0.hasSuffix(".conf") }
            .compactMap { name in (try? read("\(directory)/\(name)")).map { (name: name, text: $0) } }
        guard !texts.isEmpty else { return }
        let policy = try? read(policy)
        try Mount.memory(at: directory)
        for (name, text) in texts { try PlainFile.write(text, to: "\(directory)/\(name)") }
        if let policy {
            let copy = "\(directory)/.policy"
            try PlainFile.write(policy, to: copy)
            for file in SystemTrust.real([Self.policy]) { try Mount.bind(copy, to: file) }
        }
        try Mount.protect(directory)
    }

    private static func read(_ path: String) throws(MountError) -> [UInt8] { try PlainFile.read(path, limit: limit) }
}
