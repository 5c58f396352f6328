internal import Bundles
internal import Configuration
internal import FoundationEssentials
internal import Security
internal import TLS

/// The files of a policy: from their places into a bundle, and out of a bundle into a directory.
enum PolicyCollection {
    /// The pin file and what it names, checked.
    /// - Throws: after every problem was printed.
    static func files(of pinFile: String) throws -> [BundleFile] {
        // A missing file is the caller's mistake, and not the configuration's.
        let bytes = try contents(pinFile)
        let policy = try printing { () throws(ConfigurationProblems) in try PolicyFiles.load(pinFile) }
        for warning in policy.warnings { Standard.error("\(warning)") }
        let objections = policy.named.compactMap(objection)
        guard objections.isEmpty else {
            for problem in objections { Standard.error("\(problem)") }
            throw CommandFailure(code: CommandFailure.configuration)
        }
        var files = [BundleFile(path: PolicyBundle.pinFile, bytes: bytes)]
        for file in policy.named {
            let path = shortest(file.name)
            guard !files.contains(where: { $0.path == path }) else { continue }
            files.append(BundleFile(path: path, bytes: try contents(file.path)))
        }
        // What a machine will read is read here: the files may have changed since.
        let place = try Materialised(files)
        _ = try printing(place.path, as: pinFile) { () throws(ConfigurationProblems) in
            try PolicyFiles.load(place.pinFile)
        }
        return files
    }

    private static func objection(to file: NamedFile) -> Problem? {
        let reason: String
        switch file.purpose {
        case .secret:
            reason =
                "a secret or private key, which a bundle never carries; move the entry to the pin file of the machine "
                + "that has it"
        case .content: reason = "the contents of a request, which a bundle doesn't carry"
        case .policy:
            guard let objection = BundleFile.objection(to: shortest(file.name)) else {
                guard shortest(file.name) == PolicyBundle.pinFile, file.key == "file" else { return nil }
                reason = "the name that the pin file has in a bundle"
                break
            }
            reason = "\(objection); a bundle takes files below the directory of the pin file"
        }
        return Problem(.error, at: file.place, "\(file.key): \(file.name.printable) is \(reason)")
    }

    /// `certs/a.pem` for `./certs//a.pem`; as it is, where it begins with a slash.
    private static func shortest(_ name: String) -> String {
        (name.hasPrefix("/") ? "/" : "")
            + name.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }

    private static func contents(_ path: String) throws -> [UInt8] {
        do throws(FileProblem) {
            return try SmallFile.read(path, limit: BundleFile.bytesLimit).bytes
        } catch {
            throw CommandFailure("\(path.printable): \(error)")
        }
    }

    /// - Parameters:
    ///   - directory: what is found there is told of a file that people know.
    static func printing<Value>(
        _ directory: String? = nil, as name: String = "", _ load: () throws(ConfigurationProblems) -> Value
    ) throws -> Value {
        do throws(ConfigurationProblems) {
            return try load()
        } catch {
            let text = error.description
            Standard.error(directory.map { text.replacing("\($0)/", with: "\(name.printable): ") } ?? text)
            throw CommandFailure(code: CommandFailure.configuration)
        }
    }

    /// The files of a bundle in a directory of this process, as a machine has them.
    final class Materialised {
        private let directory: ScratchDirectory
        var path: String { directory.path }
        var pinFile: String { "\(path)/\(PolicyBundle.pinFile)" }

        /// - Parameter files: with paths that the format allows.
        init(_ files: [BundleFile]) throws {
            directory = try ScratchDirectory(for: "bundle")
            for file in files {
                guard BundleFile.objection(to: file.path) == nil else {
                    throw CommandFailure("\(file.path.printable) can't be in a bundle")
                }
                let place = URL(fileURLWithPath: "\(directory.path)/\(file.path)")
                do {
                    try FileManager.default.createDirectory(
                        at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
                    try Data(file.bytes).write(to: place)
                } catch {
                    throw CommandFailure("\(place.path): it can't be written")
                }
            }
        }
    }
}
