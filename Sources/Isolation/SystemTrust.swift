internal import Glibc

/// The machine's trust stores as a command sees them: with the proxy's authority added, by private mounts.
///
/// The bundle covers files. OpenSSL looks certificates up in a directory by the hash of their subject: such a directory
/// is covered by one with the authority added. Nothing outside changes, and nothing is left when the command has ended.
package struct SystemTrust: Sendable {
    /// A certificate to add to directories.
    package struct Authority: Sendable, Equatable {
        /// The hash of its subject, as by openssl-rehash(1).
        package let hash: String
        package let pem: String

        package init(hash: String, pem: String) { (self.hash, self.pem) = (hash, pem) }
    }

    /// The PEM files with all certificates of a system: Debian and most others, Fedora, openSUSE, Alpine and
    /// Arch, and the default of OpenSSL.
    package static let files = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem",
        "/etc/pki/tls/cert.pem",
        "/etc/pki/tls/cacert.pem", "/usr/lib/ssl/cert.pem", "/usr/local/ssl/cert.pem",
    ]
    /// Directories of hashed certificates; the last is Mono's.
    package static let directories = [
        "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted/pem/directory-hash",
        "/var/lib/ca-certificates/openssl",
        "/usr/lib/ssl/certs", "/usr/local/ssl/certs", "/usr/share/.mono/new-certs/Trust",
    ]
    /// Directories where p11-kit finds certificates added by an administrator: Fedora, openSUSE, Arch. There GnuTLS and
    /// NSS get them from p11-kit, and don't read the files above.
    package static let anchors = [
        "/etc/pki/ca-trust/source/anchors", "/etc/pki/trust/anchors", "/etc/ca-certificates/trust-source/anchors",
    ]
    /// Java's stores.
    package static let javaStores = [
        "/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts", "/etc/pki/java/cacerts",
    ]

    let bundle: String
    let javaStore: String?
    let authorities: [Authority]
    let bundled: [String]
    let settings: [AddedSettings]

    /// - Parameters:
    ///   - bundle: the path of a PEM file with the system's certificates and the authority.
    ///   - javaStore: the path of the same for Java; nil: its stores stay as they are.
    ///   - bundled: files that programs bring along; also covered.
    ///   - settings: contents of other system files for the command.
    package init(
        bundle: String, javaStore: String?, authorities: [Authority], bundled: [String] = [],
        settings: [AddedSettings] = []
    ) {
        (self.bundle, self.javaStore, self.authorities) = (bundle, javaStore, authorities)
        (self.bundled, self.settings) = (bundled, settings)
    }

    /// Covers those of these places that this machine has, in this process's private mount namespace.
    func cover() throws(IsolationError) {
        do throws(MountError) {
            // Several names may be one place, by symbolic links.
            for directory in Self.real(Self.directories + Self.anchors) where Self.kind(of: directory) == S_IFDIR {
                try cover(directory: directory)
            }
            try coverFiles()
            try SSHSettings.cover()
        } catch {
            throw IsolationError("\(error.path) can't be covered: \(error.reason)")
        }
    }

    /// Covers files by copies in memory. A file that was replaced while it covers another can't be covered by a nested
    /// run: mount(2) then fails with ENOENT.
    private func coverFiles() throws(MountError) {
        let bytes = (bundle: try PlainFile.read(bundle), store: try javaStore.map(Self.read))
        // No covered path is there, and it is visible again afterwards.
        let stage = String(bundle[..<(bundle.lastIndex(of: "/") ?? bundle.startIndex)])
        try Mount.memory(at: stage)
        defer { Mount.remove(at: stage) }
        try cover(Self.files + bundled, with: bytes.bundle, by: "\(stage)/bundle")
        if let store = bytes.store { try cover(Self.javaStores, with: store, by: "\(stage)/store") }
        for (number, added) in settings.enumerated() {
            guard let text = try? PlainFile.read(added.path) else { continue }
            let lines = Array("\n\(added.lines)".utf8)
            try cover([added.path], with: text + lines, by: "\(stage)/settings-\(number)")
        }
    }

    private static func read(_ path: String) throws(MountError) -> [UInt8] { try PlainFile.read(path) }

    private func cover(_ files: [String], with bytes: [UInt8], by copy: String) throws(MountError) {
        try PlainFile.write(bytes, to: copy)
        for file in Self.real(files) where Self.kind(of: file) == S_IFREG {
            try Mount.bind(copy, to: file)
            try Mount.protect(file)
        }
    }

    /// Adds the authority to its entries.
    private func cover(directory: String) throws(MountError) {
        let original = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard original >= 0 else { throw MountError(at: directory) }
        defer { close(original) }
        try Mount.memory(at: directory)
        do throws(MountError) {
            try addAuthorities(to: directory) { faccessat(original, $0, F_OK, AT_SYMLINK_NOFOLLOW) == 0 }
            let added = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard added >= 0 else { throw MountError(at: directory) }
            defer { close(added) }
            try Mount.merge(added, original, at: directory)
        } catch {
            // An older kernel, or too many overlays on each other.
            Mount.remove(at: directory)
            try copy(directory: directory)
        }
    }

    /// The place of a directory before it covers another. It exists everywhere, and is visible again afterwards.
    private static let stage = "/tmp"

    /// Copies the directory as links to its entries.
    private func copy(directory: String) throws(MountError) {
        let original = try DirectoryCopy(of: directory)
        let stage = Self.stage
        try Mount.memory(at: stage)
        do throws(MountError) {
            try original.fill(stage)
            try addAuthorities(to: stage) { original.names.contains($0) }
            try Mount.move(stage, to: directory)
        } catch {
            Mount.remove(at: stage)
            throw error
        }
        try Mount.protect(directory)
    }

    /// Adds files as openssl-rehash(1) does, under unused names.
    private func addAuthorities(to directory: String, besides isTaken: (String) -> Bool) throws(MountError) {
        func free(_ name: (Int) -> String) -> String {
            var number = 0
            while isTaken(name(number)) || access("\(directory)/\(name(number))", F_OK) == 0 { number += 1 }
            return name(number)
        }
        for authority in authorities {
            let file = free { "pinproxy-\($0).pem" }
            try PlainFile.write(Array(authority.pem.utf8), to: "\(directory)/\(file)")
            let link = free { "\(authority.hash).\($0)" }
            guard symlink(file, "\(directory)/\(link)") == 0 else { throw MountError(at: "\(directory)/\(link)") }
        }
    }

    /// The existing paths, with links resolved, each once.
    static func real(_ paths: [String]) -> [String] {
        var found: [String] = []
        for path in paths {
            guard let resolved = realpath(path, nil) else { continue }
            defer { free(resolved) }
            let real = String(cString: resolved)
            if !found.contains(real) { found.append(real) }
        }
        return found
    }

    private static func kind(of path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }
}
