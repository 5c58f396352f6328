internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyIsolation
internal import PinproxySecurity
internal import PinproxyTLS

/// Records the sources of ``TrustFiles``, so that the next command can reuse the files. Reading a few hundred
/// certificates takes longer than all else in `pinproxy exec`, and reading one with OpenSSL a fifth of it.
struct TrustStamp {
    static let name = "made"

    /// The sources of the files.
    struct Sources {
        /// The system's bundle; nil: no bundle.
        let roots: String?
        /// Fingerprints, or the edition of the file that has them all.
        let authorities: [String]
    }

    let folder: String
    let directory: TrustedDirectory

    /// The files, if neither they nor their sources have changed.
    func files(of sources: Sources) -> TrustFiles? {
        guard let made = try? directory.read("\(folder)/\(Self.name)").bytes else { return nil }
        let lines = made.split(separator: Self.lineFeed, omittingEmptySubsequences: false)
        guard lines.count >= Self.linesOfFiles else { return nil }
        let paths = lines[1..<Self.linesOfFiles].map { String(decoding: $0, as: UTF8.self) }
        let hashed = lines[Self.linesOfFiles...].map { line in
            let hash = line.prefix { $0 != Self.space }
            let pem = line.dropFirst(hash.count + 1).map { $0 == Self.tab ? Self.lineFeed : $0 }
            return SystemTrust.Authority(
                hash: String(decoding: hash, as: UTF8.self), pem: String(decoding: pem, as: UTF8.self))
        }
        let files = TrustFiles(
            bundle: paths[0], authority: paths[1], javaStore: paths[2].isEmpty ? nil : paths[2], hashed: hashed)
        return made == bytes(files, of: sources) ? files : nil
    }

    /// Stores the stamp. Without it the next command does the work again.
    func keep(_ files: TrustFiles, of sources: Sources) {
        guard let bytes = bytes(files, of: sources) else { return }
        _ = try? TrustFiles.write(bytes, to: "\(folder)/\(Self.name)", in: directory, mode: 0o644)
    }

    private static let linesOfFiles = 4
    private static let (lineFeed, tab, space): (UInt8, UInt8, UInt8) = (10, 9, 32)

    /// Lines: the sources of the bundle and the editions of all files; the paths of the three files; then one line for
    /// each authority, its PEM with tabs for newlines.
    private func bytes(_ files: TrustFiles, of sources: Sources) -> [UInt8]? {
        let paths = [files.bundle, files.authority, files.javaStore].compactMap(\.self)
        let editions = paths.map { FileStamp($0).text }
        // A path with a newline doesn't fit this format.
        guard !editions.contains(nil), !paths.contains(where: { $0.utf8.contains(Self.lineFeed) }) else { return nil }
        let roots = sources.roots.map { FileStamp($0).text ?? "" } ?? ""
        let first = (sources.authorities + [roots] + editions.map { $0 ?? "" }).joined(separator: " ")
        let authorities = files.hashed.map { authority in
            Array(authority.hash.utf8) + [Self.space]
                + authority.pem.utf8.map { $0 == Self.lineFeed ? Self.tab : $0 }
        }
        let lines = [first, files.bundle, files.authority, files.javaStore ?? ""].map { Array($0.utf8) } + authorities
        return Array(lines.joined(separator: [Self.lineFeed]))
    }
}

/// The stamps in a directory, one for each authority.
struct TrustStamps {
    /// Rotations leave stamps behind. Beyond this number the certificates are read.
    private static let limit = 16

    let directory: TrustedDirectory

    /// - Parameter key: the authority's.
    func stamp(_ key: String) -> TrustStamp { TrustStamp(folder: StateFiles.trustFolder(key), directory: directory) }

    /// The files made from these sources, and the key of their authority.
    func find(_ sources: TrustStamp.Sources) -> (files: TrustFiles, key: String)? {
        for key in directory.names(in: "trust").prefix(Self.limit) {
            if let files = stamp(key).files(of: sources) { return (files, key) }
        }
        return nil
    }
}
