import PinproxyConfiguration

/// Loads pinproxy.yaml and the pin file into a snapshot.
enum Files {
    /// The main file, and the other one after a line `--- pins`.
    static func configuration(_ bytes: [UInt8]) {
        let both = parts(of: bytes, separatedBy: "pins", most: 2)
        let (main, pins) = (both[0], both.count > 1 ? both[1] : [])
        let files = ConfigurationFiles(contents: [
            .init(path: "/fuzz/pinproxy.yaml", bytes: main), .init(path: "/fuzz/pins.yaml", bytes: pins),
        ])
        let first = outcome(files)
        // Only for some inputs, since it doubles the time.
        if bytes.count % 8 == 0 { require(first == outcome(files), "the same files say the same") }
    }

    /// - Returns: what is reported about them.
    private static func outcome(_ files: ConfigurationFiles) -> [String] {
        do throws(ConfigurationProblems) {
            let snapshot = try Snapshot.load("/fuzz/pinproxy.yaml", from: files, stateDirectory: "/fuzz/state")
            require(!snapshot.warnings.contains { $0.severity == .error }, "a snapshot has no errors")
            return snapshot.warnings.map { "\($0)" }
        } catch {
            let problems = error.problems.map { "\($0)" }
            require(error.problems.contains { $0.severity == .error }, "what is refused has an error: \(problems)")
            return problems
        }
    }
}
