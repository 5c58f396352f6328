import EventLoop
import Security

/// Where the proxy accepts clients while systemd says it (`listen: systemd`): a file of the state directory, for users who
/// can't ask the proxy. It outlives the process, since the sockets do.
package struct ListenFile {
    package static let name = "listen"
    private let directory: TrustedDirectory
    package var path: String { "\(directory.path)/\(Self.name)" }

    package init(in stateDirectory: String) { directory = TrustedDirectory(stateDirectory) }

    func write(_ addresses: [SocketAddress]) throws(FileProblem) {
        try directory.write(Array(addresses.map { "\($0)\n" }.joined().utf8), to: Self.name, mode: 0o644)
    }

    /// The addresses, one for each line; empty if there is no such file.
    package func read() -> [Substring] {
        guard let file = try? directory.read(Self.name) else { return [] }
        return String(decoding: file.bytes, as: UTF8.self).split(separator: "\n")
    }
}
