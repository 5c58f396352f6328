import Glibc

/// A credential that systemd passes to a service (LoadCredential= of systemd.exec(5)), `credential:NAME` as a path. It
/// is in `$CREDENTIALS_DIRECTORY`; root's commands use the running packaged unit's.
package enum ServiceCredential {
    package static let prefix = "credential:"

    private static var directory: String {
        getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) } ?? "/run/credentials/pinproxy.service"
    }

    /// Whether systemd accepts the name: a file's, in printable ASCII without a colon.
    package static func isName(_ name: some StringProtocol) -> Bool {
        (1...255).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":") }
    }

    package static func path(_ name: some StringProtocol) -> String { "\(directory)/\(name)" }

    package static func isCredential(_ path: String) -> Bool { name(at: path) != nil }

    /// The name of the credential at the path, if one belongs there.
    static func name(at path: String) -> Substring? {
        guard path.hasPrefix(directory + "/") else { return nil }
        let name = path.dropFirst(directory.utf8.count + 1)
        return isName(name) ? name : nil
    }

    /// Why a file can't be opened, where `errno` says too little: the unit lacks the credential.
    package static func absence(_ path: String, _ code: Int32) -> String? {
        guard code == ENOENT, let name = name(at: path) else { return nil }
        return
            "systemd has handed over no credential \"\(name)\"; write LoadCredential=\(name):FILE into the [Service] "
            + "section of the unit (systemctl edit pinproxy), and restart it"
    }
}
