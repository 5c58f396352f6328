internal import Configuration
internal import Glibc
internal import Security
internal import TLS

/// Says what the files of ``TrustFiles`` were made of, so that the next command takes them as they are: to read some
/// hundred certificates takes longer than all else of `pinproxy exec`.
struct TrustStamp {
    static let name = "made"

    /// What they are made of.
    struct Sources {
        /// The system's bundle; nil: there is none.
        let roots: String?
        /// Fingerprints.
        let authorities: [String]
    }

    let folder: String
    let directory: TrustedDirectory

    /// The files, if neither they nor what they were made of has changed.
    func files(of sources: Sources) -> TrustFiles? {
        guard let text = try? directory.read("\(folder)/\(Self.name)") else { return nil }
        let lines = String(decoding: text.bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
        guard lines.count == 4 else { return nil }
        let files = TrustFiles(bundle: lines[1], authority: lines[2], javaStore: lines[3].isEmpty ? nil : lines[3])
        return lines == self.lines(files, of: sources) ? files : nil
    }

    /// Without it the next command does the work again.
    func keep(_ files: TrustFiles, of sources: Sources) {
        guard let lines = lines(files, of: sources) else { return }
        _ = try? TrustFiles.write(
            Array(lines.joined(separator: "\n").utf8), to: "\(folder)/\(Self.name)", in: directory, mode: 0o644)
    }

    /// First the editions of all files, with what the bundle is made of; then where they are.
    private func lines(_ files: TrustFiles, of sources: Sources) -> [String]? {
        let paths = [files.bundle, files.authority, files.javaStore].compactMap(\.self)
        let editions = paths.map { FileStamp($0).text }
        // A name on several lines fits into no such file.
        guard !editions.contains(nil), !paths.contains(where: { $0.contains { $0.isNewline } }) else { return nil }
        let roots = sources.roots.map { FileStamp($0).text ?? "" } ?? ""
        let first = (sources.authorities + [roots] + editions.map { $0 ?? "" }).joined(separator: " ")
        return [first, files.bundle, files.authority, files.javaStore ?? ""]
    }
}
