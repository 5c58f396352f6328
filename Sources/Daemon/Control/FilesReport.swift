package import PinproxyConfiguration
package import PinproxyTLS
import Synchronization

/// The answer of `GET /files`: the files of the configuration in force. For the control socket alone.
package struct FilesReport: Codable, Sendable, Equatable {
    package static let target = "/files"

    /// pinproxy.yaml's absolute path.
    package let configuration: String
    package let readAt: UnixTime
    /// Empty for a fallback, which was read from copies.
    package let files: [FileStamp]
    /// The files that patterns named; nil: an older proxy.
    package let listings: [FileListing]?
    /// Why the start has refused the files.
    package let fallback: String?
    /// The state directory has a copy of what is in force (``KeptConfiguration``).
    package let kept: Bool

    /// Files that were written, replaced or removed since, and directories where one was added.
    package var changed: [String] {
        let files = files.filter { !$0.isCurrent }.map(\.path)
        let directories = (listings ?? []).filter { !$0.isCurrent }.map(\.directory)
        return files + directories.filter { directory in !files.contains { $0.hasPrefix(directory + "/") } }
    }
}

/// The last generation of the configuration that was copied. Set by the thread that writes the copy.
final class KeptGeneration: Sendable {
    private let number = Atomic(0)

    func wrote(_ generation: Int) { number.store(generation, ordering: .relaxed) }

    func isOf(_ generation: Int) -> Bool { number.load(ordering: .relaxed) == generation }
}
