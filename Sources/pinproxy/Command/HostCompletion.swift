internal import ArgumentParser
internal import Configuration
internal import Security

/// The hosts that shells complete: those that the configuration names.
enum HostCompletion {
    /// Among more than these, a person types more letters.
    private static let limit = 1000

    static let kind = CompletionKind.custom { words, _, prefix in hosts(words, beginningWith: prefix) }

    /// - Parameter words: the command line so far, which may name a configuration. With a wrong one nothing is completed.
    private static func hosts(_ words: [String], beginningWith prefix: String) -> [String] {
        // bash hands over --config=FILE as three words.
        let words = words.filter { $0 != "=" }
        let place = words.firstIndex { $0 == "--config" || $0.hasPrefix("--config=") }
        let configuration = place.map { Array(words[$0...].prefix(words[$0] == "--config" ? 2 : 1)) } ?? []
        guard let options = try? ConfigurationOptions.parse(configuration), let file = try? options.file(),
            let directory = try? options.stateDirectory(for: file),
            let snapshot = try? Snapshot.load(file, stateDirectory: directory, services: ConfigurationOptions.services(directory))
        else { return [] }
        let names = snapshot.hosts.entries.lazy.filter { $0.pattern.scope == .exact }.map { $0.pattern.description }
            .filter { $0.hasPrefix(prefix) }.prefix(limit)
        // For zsh a description follows a colon.
        return names.map { CompletionShell.requesting == .zsh ? $0.replacing(":", with: "\\:") : $0 }
    }
}
