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
        let policy = try load(pinFile)
        for warning in policy.warnings { Standard.error("\(warning)") }
        var files = [BundleFile(path: PolicyBundle.pinFile, bytes: bytes)]
        for file in policy.named where !file.isOfMachine && !files.contains(where: { $0.path == file.bundlePath }) {
            files.append(BundleFile(path: file.bundlePath, bytes: try contents(file.path)))
        }
        // What a machine will read is read here: the files may have changed since.
        _ = try load(files, from: pinFile)
        return files
    }

    /// What a machine makes of the files of a bundle.
    /// - Parameter name: the bundle's or pin file's, for people.
    static func load(_ files: [BundleFile], from name: String) throws -> PolicyFiles {
        let place = try Materialised(files)
        return try load(place.pinFile) { $0.replacing("\(place.path)/", with: "\(name.printable): ") }
    }

    /// - Parameter shown: what people know the names in a message by.
    private static func load(_ pinFile: String, shown: (String) -> String = { $0 }) throws -> PolicyFiles {
        let policy: PolicyFiles
        do throws(ConfigurationProblems) { policy = try PolicyFiles.load(pinFile) } catch {
            Standard.error(shown(error.description))
            throw CommandFailure(code: CommandFailure.configuration)
        }
        let objections = policy.named.compactMap { file in
            objection(to: file).map {
                Problem(.error, at: file.place, "\(file.key): \(file.name.printable) is \($0)")
            }
        }
        guard objections.isEmpty else {
            for problem in objections { Standard.error(shown("\(problem)")) }
            throw CommandFailure(code: CommandFailure.configuration)
        }
        return policy
    }

    private static func objection(to file: NamedFile) -> String? {
        if file.isOfMachine { return nil }
        if let objection = file.objectionToCarrying ?? BundleFile.objection(to: file.bundlePath) { return objection }
        return file.bundlePath == PolicyBundle.pinFile ? "the name that the pin file has in a bundle" : nil
    }

    private static func contents(_ path: String) throws -> [UInt8] {
        do throws(FileProblem) {
            return try SmallFile.read(path, limit: BundleFile.bytesLimit).bytes
        } catch {
            throw CommandFailure("\(path.printable): \(error)")
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
