extension TestBed {
    /// The arguments of `pinproxy exec` for a test's proxy.
    func execArguments(_ options: [String] = [], _ command: [String], folder: String = "proxy") -> [String] {
        [ProxyProcess.executable, "exec", "--config", path("\(folder)/pinproxy.yaml")] + options + ["--"] + command
    }

    /// Runs a command under `pinproxy exec` to its end.
    func exec(
        options: [String] = [], environment: [String: String] = [:], launcher: [String] = [], _ command: String...
    ) async throws -> Run {
        try await run(
            launcher + execArguments(options, command),
            environment: ProxyProcess.environment(in: self).merging(environment) { $1 })
    }
}

extension Run {
    /// The messages of `pinproxy exec`, without the command's output.
    var told: [String] { errors.split(separator: "\n").filter { $0.hasPrefix("pinproxy: ") }.map(String.init) }
}
