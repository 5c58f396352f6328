import Glibc
package import PinproxyTLS

/// A file with a private key or a password.
package enum PrivateFile {
    /// Reads it whole, if this process's user or root owns it and it is closed to everybody else. systemd secures a
    /// ``ServiceCredential`` by an access control list, which shows as group permissions, or by its owner.
    /// - Parameter services: for root's commands, users that the proxy may run as. Root accepts their files too.
    package static func read(_ path: String, of services: Set<UInt32> = []) throws(PrivateFileProblem) -> [UInt8] {
        try read(.named(path), of: services)
    }

    static func read(_ place: FilePlace, of services: Set<UInt32> = []) throws(PrivateFileProblem) -> [UInt8] {
        let file: SmallFile
        do { file = try place.read() } catch { throw .unreadable(error) }
        let isCredential = if case .named(let path) = place { ServiceCredential.name(at: path) != nil } else { false }
        let isAnothers = file.owner != geteuid() && file.owner != 0
        // TrustedDirectory has checked a kept file's owner.
        let isService = if case .kept = place { true } else { services.contains(file.owner) }
        guard !isAnothers || (geteuid() == 0 && (isCredential || isService)) else { throw .foreign(owner: file.owner) }
        guard file.mode & (isCredential ? 0o037 : 0o077) == 0 else { throw .exposed(mode: file.mode) }
        return file.bytes
    }
}

package enum PrivateFileProblem: Error, Sendable, Hashable, CustomStringConvertible {
    case unreadable(FileProblem)
    case exposed(mode: UInt32)
    case foreign(owner: UInt32)

    package var description: String {
        switch self {
        case .unreadable(let problem): "\(problem)"
        case .exposed(let mode): "it is open to other users (mode \(String(mode & 0o777, radix: 8))): chmod 600"
        case .foreign(let owner):
            "it belongs to user \(owner), who is neither root nor the user that runs this: chown it"
        }
    }
}
