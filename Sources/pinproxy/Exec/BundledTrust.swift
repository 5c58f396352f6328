internal import FoundationEssentials
internal import Glibc

/// Files of certificates that programs bring along: Python's certifi, in all the places where it is installed, and
/// gsutil's.
enum BundledTrust {
    private static let limit = 256
    private static let names = ["certifi/cacert.pem", "pip/_vendor/certifi/cacert.pem", "gslib/data/cacerts.txt"]
    private static let cloudSDK = "platform/gsutil/gslib/data/cacerts.txt"

    /// - Parameters:
    ///   - command: its name or path, which may be in a virtual environment.
    static func files(for command: String, _ environment: [String: String]) -> [String] {
        let home = environment["HOME"].map { $0.hasPrefix("/") ? $0 : "" } ?? ""
        var prefixes = ["/usr", "/usr/local", "/opt/pipx/venvs/*"]
        if !home.isEmpty { prefixes += ["\(home)/.local", "\(home)/.local/share/pipx/venvs/*"] }
        prefixes += ["VIRTUAL_ENV", "CONDA_PREFIX"].compactMap { environment[$0] }.filter { $0.hasPrefix("/") }.map(
            escaped)
        if let path = ChildCommand.path(of: command) {
            prefixes += Set([absolute(path), real(path)].compactMap(prefix)).map(escaped)
        }
        var patterns = ["/usr/lib/google-cloud-sdk/\(cloudSDK)"]
        for prefix in prefixes {
            for name in names { patterns.append("\(prefix)/lib/python3*/{site,dist}-packages/\(name)") }
        }
        return Array(patterns.flatMap(matches).prefix(limit))
    }

    /// `/opt/tool` for `/opt/tool/bin/run`.
    private static func prefix(_ path: String) -> String? {
        let folder = PathText.directory(of: path)
        return PathText.name(of: folder) == "bin" && folder.hasPrefix("/") ? PathText.directory(of: folder) : nil
    }

    private static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }

    /// A command in PATH may be a link into a virtual environment.
    private static func real(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Nothing in it is a pattern.
    private static func escaped(_ path: String) -> String {
        var text = ""
        for character in path {
            if "*?[]{}\\~,".contains(character) { text.append("\\") }
            text.append(character)
        }
        return text
    }

    private static func matches(_ pattern: String) -> [String] {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(pattern, GLOB_NOSORT | GLOB_BRACE, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }
}
