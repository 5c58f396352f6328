internal import FoundationEssentials
internal import Glibc

/// The identity of this machine.
package enum MachineIdentity {
    /// By machine-id(5), which images of machines must not share; else the host's name. Only hashes of it leave the
    /// machine.
    package static var text: String {
        for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            let machine = text.prefix { !$0.isWhitespace }
            if machine.utf8.count >= 16 { return String(machine) }
        }
        return hostName
    }

    package static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
