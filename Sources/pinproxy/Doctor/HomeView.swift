internal import FoundationEssentials
internal import Glibc

/// A home directory for programs that are only being tried: links to the files that the user has in theirs, so that
/// what is configured there holds. What a program makes anew, in a directory of its settings too, goes with this
/// directory.
struct HomeView {
    /// Where programs have directories of their own.
    private static let shared: Set<String> = [".config", ".local", ".local/share", ".local/state"]
    /// What is kept there is nobody's configuration.
    private static let leftOut: Set<String> = [".cache"]

    let path: String

    /// - Parameter home: nil: an empty one.
    init(of home: String?, at path: String) throws {
        self.path = path
        guard mkdir(path, 0o700) == 0 else { throw CommandFailure("\(path): \(systemReason())") }
        if let home { link("", of: home) }
    }

    /// Directories whose name begins with a dot, and those in ``shared``, are made anew; all else is a link.
    private func link(_ folder: String, of home: String) {
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: "\(home)/\(folder)")) ?? [] {
            let name = folder.isEmpty ? entry : "\(folder)/\(entry)"
            if Self.leftOut.contains(name) { continue }
            let isOfSettings = folder.isEmpty ? entry.hasPrefix(".") : Self.shared.contains(folder)
            if isOfSettings, Self.isDirectory("\(home)/\(name)"), mkdir("\(path)/\(name)", 0o700) == 0 {
                link(name, of: home)
            } else {
                symlink("\(home)/\(name)", "\(path)/\(name)")
            }
        }
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
