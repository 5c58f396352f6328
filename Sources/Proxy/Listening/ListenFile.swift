import EventLoop
import Security

/// Where the proxy accepts clients while systemd says it (`listen: systemd`): a file of the state directory, for users who
/// can't ask the proxy. It outlives the process, since the sockets do.
package struct ListenFile {
    package let path: String

    package init(in stateDirectory: String) { path = stateDirectory + "/listen" }

    func write(_ addresses: [SocketAddress]) throws(AuthorityError) {
        try NewFile.write(Array(addresses.map { "\($0)\n" }.joined().utf8), to: path, mode: 0o644)
    }

    /// The addresses, one for each line; empty if there is no such file.
    package func read() -> [Substring] {
        guard let file = try? SmallFile.read(path) else { return [] }
        return String(decoding: file.bytes, as: UTF8.self).split(separator: "\n")
    }
}
