internal import Security

extension Snapshot {
    /// Each copy takes a descriptor while it is read.
    private static let copiesLimit = 256

    /// Copies of the files that this configuration was read from, unchanged since.
    /// - Parameter limit: of all of them together, in bytes.
    package func copyFiles(limit: Int) throws(ConfigurationFilesProblem) -> ConfigurationFiles {
        guard sources.count <= Self.copiesLimit else { throw .tooMany(limit: Self.copiesLimit) }
        var (contents, left) = ([ConfigurationFiles.File](), limit)
        for stamp in sources {
            let bytes: [UInt8]
            do throws(FileProblem) {
                bytes = try SmallFile.read(stamp.path, limit: left).bytes
            } catch .tooLarge {
                throw .tooLarge(limit: limit)
            } catch {
                throw .unreadable(path: stamp.path, error)
            }
            guard stamp.isCurrent else { throw .changed(path: stamp.path) }
            left -= bytes.count
            contents.append(ConfigurationFiles.File(path: stamp.path, bytes: bytes))
        }
        return ConfigurationFiles(contents: contents)
    }

    /// Reads the configuration from copies of its files. Problems name the files themselves.
    package static func load(
        _ file: String, from copies: ConfigurationFiles, stateDirectory: String
    ) throws(ConfigurationProblems) -> Snapshot {
        try load(file, stateDirectory: stateDirectory, findings: Findings(sources: try FileSources(copies)))
    }
}
