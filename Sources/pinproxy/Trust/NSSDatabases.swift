internal import FoundationEssentials
internal import Glibc
internal import TLS

/// The trust stores of a user's browsers: NSS databases, one of Chromium and one for each profile of Firefox.
struct NSSDatabases {
    var home: String

    static func name(of certificate: Certificate) -> String { "pinproxy \(certificate.sha256.hex.prefix(12))" }

    /// Chromium's, which is made if it isn't there, and those of Firefox that are.
    var directories: [String] {
        let profiles = [".mozilla/firefox", "snap/firefox/common/.mozilla/firefox", ".var/app/org.mozilla.firefox/.mozilla/firefox"]
        let found = profiles.flatMap { folder -> [String] in
            let path = "\(home)/\(folder)"
            return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted().map { "\(path)/\($0)" }
        }
        return ["\(home)/.pki/nssdb"] + found.filter { access($0 + "/cert9.db", F_OK) == 0 }
    }

    /// - Returns: the databases that have it now.
    func install(_ certificate: Certificate) throws -> [String] {
        let chromium = "\(home)/.pki/nssdb"
        if access(chromium + "/cert9.db", F_OK) != 0 {
            do {
                try FileManager.default.createDirectory(
                    atPath: chromium, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            } catch {
                throw CommandFailure("\(chromium): \(systemReason())")
            }
            try run("-N", "--empty-password", in: chromium)
        }
        for directory in directories {
            try run("-A", "-t", "C,,", "-n", Self.name(of: certificate), in: directory, input: certificate.der)
        }
        return directories
    }

    /// - Parameter name: nil: every authority of this program.
    /// - Returns: the databases that it was taken out of.
    func remove(_ name: String?) throws -> [String] {
        try directories.filter { access($0 + "/cert9.db", F_OK) == 0 }.filter { directory in
            let installed = try run("-L", in: directory).split(separator: "\n")
                .compactMap { $0.firstMatch(of: /^pinproxy [0-9a-f]{12}/).map { String($0.output) } }
            let unwanted = installed.filter { name == nil || $0 == name }
            for name in unwanted { try run("-D", "-n", name, in: directory) }
            return !unwanted.isEmpty
        }
    }

    @discardableResult
    private func run(_ arguments: String..., in directory: String, input: [UInt8] = []) throws -> String {
        try OtherProgram(name: "certutil", package: "libnss3-tools").run(arguments + ["-d", "sql:\(directory)"], input: input)
    }
}
