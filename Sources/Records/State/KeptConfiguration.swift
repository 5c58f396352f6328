import FoundationEssentials
import Glibc
package import PinproxyConfiguration
import PinproxySecurity
package import PinproxyTLS

/// The last configuration in force, kept in the state directory for a start with refused files. Never weaker than what
/// was in force: each new configuration replaces or removes it. Without secrets (``FileSources``).
package struct KeptConfiguration: Sendable {
    package static let fileName = "configuration.json"
    /// Most bytes of all files: 100,000 hosts have about 20 MB.
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
        /// SHA-256 of the files, against corruption.
        var digest: String
    }

    private let directory: TrustedDirectory
    private let file: StateFile<Record>

    package init(in directory: String) {
        self.directory = TrustedDirectory(directory)
        file = StateFile(Self.fileName, in: directory, mode: 0o600)
    }

    package var path: String { file.path }

    /// Replaces the previous one. After a failure nothing is stored.
    /// - Parameter version: of the program.
    package func keep(_ snapshot: Snapshot, of version: String, at time: UnixTime) throws(KeptConfigurationProblem) {
        do {
            let files = try snapshot.copyFiles(limit: Self.limit)
            let main = files.contents.first?.path ?? ""
            // Unchanged: nothing is written.
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

    /// The kept files of this pinproxy.yaml; nil: none.
    /// - Parameter anyOwner: for root's commands: the directory may be another user's, such as a service's.
    package func files(
        of main: String, ofAnyOwner anyOwner: Bool = false
    ) throws(KeptConfigurationProblem) -> (files: ConfigurationFiles, keptAt: UnixTime)? {
        let record: Record
        do {
            if !anyOwner { try directory.requireOwn() }
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
            // Lengths delimit the fields.
            digest.append(Array("\(file.path.utf8.count) \(file.bytes.count) \(file.path)".utf8).span)
            digest.append(file.bytes.span)
        }
        return digest.digest()
    }
}

/// Why a configuration can't be kept or used.
package struct KeptConfigurationProblem: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
