internal import FoundationEssentials
internal import PinproxyBundles
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxyTLS

/// The files of a policy: from their places into a bundle, and out of a bundle into a directory.
enum PolicyCollection {
    /// The pin file and what it names, checked.
    /// - Throws: after every problem was printed.
    static func files(of pinFile: String) throws -> [BundleFile] {
        // A missing file is the caller's mistake, and not the configuration's.
        let bytes = try contents(pinFile)
        let policy = try printed { () throws(ConfigurationProblems) in try PolicyFiles.load(pinFile) }
        for warning in policy.warnings { Standard.error("\(warning)") }
        var files = [BundleFile(path: PolicyBundle.pinFile, bytes: bytes)]
        var objections: [Problem] = []
        for file in policy.named where !file.isOfMachine {
            let path = file.bundlePath(beside: pinFile)
            if let objection = file.objectionToCarrying(beside: pinFile) ?? path.flatMap(objection) {
                let message = "\(file.key): \(file.name.printable) is \(objection)"
                objections.append(Problem(.error, at: file.place, message))
            } else if let path, !files.contains(where: { $0.path == path }) {
                files.append(BundleFile(path: path, bytes: try contents(file.path)))
            }
        }
        try printed { () throws(ConfigurationProblems) in
            if !objections.isEmpty { throw ConfigurationProblems(objections) }
        }
        // Reads the collected bytes, as a machine will: the files may have changed since.
        _ = try load(files, from: pinFile)
        return files
    }

    /// Loads the files of a bundle as a machine does.
    /// - Parameter name: the bundle's or pin file's, in human-readable form.
    static func load(_ files: [BundleFile], from name: String) throws -> PolicyFiles {
        try printed(of: name) { () throws(ConfigurationProblems) in try PolicyFiles.load(files) }
    }

    /// - Parameter name: the bundle's file, for problems of files in it.
    private static func printed<Value>(
        of name: String = "", _ load: () throws(ConfigurationProblems) -> Value
    ) throws -> Value {
        do throws(ConfigurationProblems) { return try load() } catch {
            Standard.error(error.description.replacing(BundleInForce.prefix, with: "\(name.printable): "))
            throw CommandFailure(code: CommandFailure.configuration)
        }
    }

    private static func objection(to path: String) -> String? {
        BundleFile.objection(to: path)
            ?? (path == PolicyBundle.pinFile ? "the name that the pin file has in a bundle" : nil)
    }

    private static func contents(_ path: String) throws -> [UInt8] {
        do throws(FileProblem) {
            return try SmallFile.read(path, limit: BundleFile.bytesLimit).bytes
        } catch {
            throw CommandFailure("\(path.printable): \(error)")
        }
    }
}
