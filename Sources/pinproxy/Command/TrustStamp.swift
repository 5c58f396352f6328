internal import Configuration
internal import Glibc
internal import Isolation
internal import Security
internal import TLS

/// Says what the files of ``TrustFiles`` were made of, so that the next command takes them as they are: to read some
/// hundred certificates takes longer than all else of `pinproxy exec`, and to have OpenSSL read one a fifth of it.
struct TrustStamp {
    static let name = "made"

    /// What they are made of.
    struct Sources {
        /// The system's bundle; nil: there is none.
        let roots: String?
        /// Fingerprints; or the one edition of the file that has them all.
        let authorities: [String]
    }

    let folder: String
    let directory: TrustedDirectory

    /// The files, if neither they nor what they were made of has changed.
    func files(of sources: Sources) -> TrustFiles? {
        guard let text = try? directory.read("\(folder)/\(Self.name)") else { return nil }
        let lines = String(decoding: text.bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
        guard lines.count >= Self.linesOfFiles else { return nil }
        let hashed = lines[Self.linesOfFiles...].map { line in
            let hash = line.prefix { $0 != " " }
            let pem = String(line.dropFirst(hash.count + 1)).replacing(Self.lineEnd, with: "\n")
            return SystemTrust.Authority(hash: String(hash), pem: pem)
        }
        let files = TrustFiles(
            bundle: lines[1], authority: lines[2], javaStore: lines[3].isEmpty ? nil : lines[3], hashed: hashed)
        return lines == self.lines(files, of: sources) ? files : nil
    }

    /// Without it the next command does the work again.
    func keep(_ files: TrustFiles, of sources: Sources) {
        guard let lines = lines(files, of: sources) else { return }
        _ = try? TrustFiles.write(
            Array(lines.joined(separator: "\n").utf8), to: "\(folder)/\(Self.name)", in: directory, mode: 0o644)
    }

    private static let linesOfFiles = 4
    /// Of the PEM within a line.
    private static let lineEnd = "\t"

    /// First the editions of all files, with what the bundle is made of; then where they are; then a line for each
    /// authority.
    private func lines(_ files: TrustFiles, of sources: Sources) -> [String]? {
        let paths = [files.bundle, files.authority, files.javaStore].compactMap(\.self)
        let editions = paths.map { FileStamp($0).text }
        // A name on several lines fits into no such file.
        guard !editions.contains(nil), !paths.contains(where: { $0.contains { $0.isNewline } }) else { return nil }
        let roots = sources.roots.map { FileStamp($0).text ?? "" } ?? ""
        let first = (sources.authorities + [roots] + editions.map { $0 ?? "" }).joined(separator: " ")
        let authorities = files.hashed.map { "\($0.hash) \($0.pem.replacing("\n", with: Self.lineEnd))" }
        return [first, files.bundle, files.authority, files.javaStore ?? ""] + authorities
    }
}

/// Those of a directory: one for each authority.
struct TrustStamps {
    /// Of more, which rotations leave behind, the certificates are read.
    private static let limit = 16

    let directory: TrustedDirectory

    /// - Parameter key: the authority's.
    func stamp(_ key: String) -> TrustStamp { TrustStamp(folder: StateFiles.trustFolder(key), directory: directory) }

    /// The files that were made of these, and the key of their authority.
    func find(_ sources: TrustStamp.Sources) -> (files: TrustFiles, key: String)? {
        for key in directory.names(in: "trust").prefix(Self.limit) {
            if let files = stamp(key).files(of: sources) { return (files, key) }
        }
        return nil
    }
}
