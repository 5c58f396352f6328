package import Configuration
import FoundationEssentials
import Glibc
import Security
package import TLS

/// The configuration that was last in force, in the state directory. A start uses it if the present one is refused.
///
/// It is never weaker than what was in force: it is replaced whenever another configuration comes into force, and
/// removed where that can't be done. Secrets are not in it (``FileSources``).
package struct KeptConfiguration: Sendable {
    package static let fileName = "configuration.json"
    /// Of the files together: 100,000 hosts have about 20 MB.
    private static let limit = 64 << 20

    private struct Record: Codable {
        struct File: Codable {
            var path: String
            var contents: Data
        }

        static let format = 1

        var format: Int
        var version: String
        var keptAt: UnixTime
        var files: [File]
        /// SHA-256 of the files: whether a disk has given back what was written.
        var digest: String
    }

    private let directory: TrustedDirectory
    private let file: StateFile<Record>

    package init(in directory: String) {
        self.directory = TrustedDirectory(directory)
        file = StateFile(Self.fileName, in: directory, mode: 0o600)
    }

    package var path: String { file.path }

    /// Stores the configuration and replaces the previous one. After a failure none is stored.
    /// - Parameter version: of the program.
    package func keep(_ snapshot: Snapshot, of version: String, at time: UnixTime) throws(KeptConfigurationProblem) {
        do {
            let files = try snapshot.copyFiles(limit: Self.limit)
            let main = files.contents.first?.path ?? ""
            // A disk that can't be written is no matter as long as nothing changes.
            if let there = try? self.files(of: main), there.files == files { return }
            try file.write(
                Record(
                    format: Record.format, version: version, keptAt: time,
                    files: files.contents.map { Record.File(path: $0.path, contents: Data($0.bytes)) },
                    digest: Self.digest(files).hex))
        } catch {
            let isGone = forget()
            throw KeptConfigurationProblem(
                "\(error)" + (isGone ? "" : "; \(path), of a configuration before this one, can't be removed"))
        }
    }

    @discardableResult
    package func forget() -> Bool {
        directory.remove(Self.fileName)
        return (try? directory.has(Self.fileName)) == false
    }

    /// What is kept of the configuration that this pinproxy.yaml began, and since when; nil if nothing is.
    package func files(
        of main: String
    ) throws(KeptConfigurationProblem) -> (files: ConfigurationFiles, keptAt: UnixTime)? {
        let record: Record
        do {
            try directory.requireOwn()
            guard let read = try file.read() else { return nil }
            record = read
        } catch FileProblem.system(ENOENT) {
            return nil
        } catch {
            throw KeptConfigurationProblem("\(error)")
        }
        guard record.format == Record.format else {
            throw KeptConfigurationProblem(
                "\(path) is of version \(record.version), in a form that this version doesn't know")
        }
        let files = ConfigurationFiles(
            contents: record.files.map { ConfigurationFiles.File(path: $0.path, bytes: [UInt8]($0.contents)) })
        guard Self.digest(files).hex == record.digest else { throw KeptConfigurationProblem("\(path) is damaged") }
        guard files.belong(to: main) else {
            let kept = files.contents.first?.path ?? "no file"
            throw KeptConfigurationProblem("\(path) is of another configuration, \(kept)")
        }
        return (files, record.keptAt)
    }

    private static func digest(_ files: ConfigurationFiles) -> SHA256Digest {
        var digest = RunningSHA256()
        for file in files.contents {
            // Lengths first: no byte can move from one field to the next.
            digest.append(Array("\(file.path.utf8.count) \(file.bytes.count) \(file.path)".utf8).span)
            digest.append(file.bytes.span)
        }
        return digest.digest()
    }
}

/// Why a configuration can't be kept, or what is kept can't be used.
package struct KeptConfigurationProblem: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
