internal import FoundationEssentials
internal import Glibc
internal import PinproxySecurity
internal import PinproxyTLS

/// The trust store of Debian's ca-certificates; `update-ca-certificates` makes the bundle from it.
struct SystemTrustStore {
    var directory = "/usr/local/share/ca-certificates"
    var command = ["/usr/sbin/update-ca-certificates"]

    /// The file of one authority. The unique name keeps a new authority from replacing another that is still in use.
    func path(for certificate: Certificate) -> String {
        "\(directory)/pinproxy-\(certificate.sha256.hex.prefix(12)).crt"
    }

    /// All files of this program's authorities.
    func installed() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.hasPrefix("pinproxy-") && $0.hasSuffix(".crt") }.sorted().map { "\(directory)/\($0)" }
    }

    /// - Returns: false if it was already there. The bundle is rebuilt in either case.
    func install(_ certificate: Certificate) throws -> Bool {
        let path = path(for: certificate)
        let bytes = Array(certificate.pem.utf8)
        let isThere = FileManager.default.contents(atPath: path)?.elementsEqual(bytes) == true
        if !isThere {
            guard access(directory, F_OK) == 0 else {
                throw CommandFailure("\(directory) doesn't exist: install the package ca-certificates")
            }
            do throws(FileProblem) {
                try NewFile.write(bytes, to: path, mode: 0o644)
            } catch {
                guard case .system(let reason) = error else { throw CommandFailure("\(path): \(error)") }
                throw failure(path, reason)
            }
        }
        try update()
        return !isThere
    }

    func remove(_ paths: [String]) throws {
        for path in paths {
            guard unlink(path) == 0 || errno == ENOENT else { throw failure(path, errno) }
        }
        // Otherwise dangling links stay in the system's directory.
        try update("--fresh")
    }

    private func failure(_ path: String, _ reason: CInt) -> CommandFailure {
        let hint = reason == EACCES || reason == EPERM ? "; this needs root: run it with sudo" : ""
        return CommandFailure("\(path): \(systemReason(reason))\(hint)")
    }

    private func update(_ arguments: String...) throws {
        let all = command + arguments
        let said: [UInt8]
        let isSuccess: Bool
        do {
            (isSuccess, said) = try ChildProcess.run(all)
        } catch {
            throw CommandFailure("\(command[0]) can't be run: install the package ca-certificates")
        }
        guard isSuccess else {
            throw CommandFailure("\(all.joined(separator: " ")) failed:\n\(String(decoding: said, as: UTF8.self))")
        }
    }
}

/// The store of trusted certificates that a JVM brings (cacerts).
struct JVMStore {
    /// `JAVA_HOME`, or where the java of PATH is.
    let home: String

    init(_ environment: [String: String]) throws {
        if let home = environment["JAVA_HOME"], !home.isEmpty {
            self.home = home
            return
        }
        for folder in (environment["PATH"] ?? "").split(separator: ":") {
            guard access("\(folder)/java", X_OK) == 0, let path = realpath("\(folder)/java", nil) else { continue }
            defer { free(path) }
            home = String(cString: path).split(separator: "/").dropLast(2).map { "/\($0)" }.joined()
            return
        }
        throw CommandFailure("there is no java in PATH; name a JVM with JAVA_HOME")
    }

    static func name(of certificate: Certificate) -> String { "pinproxy-\(certificate.sha256.hex.prefix(12))" }

    /// - Returns: false if it was there already.
    func install(_ certificate: Certificate) throws -> Bool {
        let name = Self.name(of: certificate)
        if try installed().contains(name) { return false }
        try run("-importcert", "-noprompt", "-alias", name, input: certificate.der)
        return true
    }

    /// - Parameter name: nil: every authority of this program.
    /// - Returns: the removed authorities.
    func remove(_ name: String?) throws -> [String] {
        let unwanted = try installed().filter { name == nil || $0 == name }
        for name in unwanted { try run("-delete", "-alias", name) }
        return unwanted
    }

    private func installed() throws -> [String] {
        try run("-list").split(separator: "\n")
            .compactMap { $0.firstMatch(of: /^pinproxy-[0-9a-f]{12}/).map { String($0.output) } }
    }

    @discardableResult
    private func run(_ arguments: String..., input: [UInt8] = []) throws -> String {
        try OtherProgram(name: "\(home)/bin/keytool", package: "a JVM with keytool")
            .run(arguments + ["-cacerts", "-storepass", JavaTrustStore.password], input: input)
    }
}

/// The trust stores of a user's browsers: NSS databases, one of Chromium and one for each profile of Firefox.
struct NSSDatabases {
    var home: String
    /// XDG_CONFIG_HOME; nil: below ``home``.
    var settings: String?

    static func name(of certificate: Certificate) -> String { "pinproxy \(certificate.sha256.hex.prefix(12))" }

    /// Chromium's, which may not exist yet, and existing ones of Firefox.
    var directories: [String] {
        // Since version 147 Firefox keeps new profiles where the XDG specification requires.
        let profiles = ["", "snap/firefox/common/", ".var/app/org.mozilla.firefox/"]
            .flatMap { ["\(home)/\($0).mozilla/firefox", "\(home)/\($0).config/mozilla/firefox"] }
        let others =
            ["\(home)/.var/app/org.mozilla.firefox/config/mozilla/firefox"]
            + (settings.map { ["\($0)/mozilla/firefox"] } ?? [])
        let found = (profiles + others.filter { !profiles.contains($0) }).flatMap { path -> [String] in
            ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted().map { "\(path)/\($0)" }
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
            // Lets the removal delete the database.
            _ = FileManager.default.createFile(atPath: "\(chromium)/\(Self.mark)", contents: nil)
        }
        for directory in directories {
            try run("-A", "-t", "C,,", "-n", Self.name(of: certificate), in: directory, input: certificate.der)
        }
        return directories
    }

    /// Marks a database made by this program.
    private static let mark = "made-by-pinproxy"

    /// Removes Chromium's database if this program made it and nothing was added since.
    private func removeOwn() throws {
        let directory = "\(home)/.pki/nssdb"
        guard access("\(directory)/\(Self.mark)", F_OK) == 0, access("\(directory)/cert9.db", F_OK) == 0 else { return }
        // certutil lists one certificate per line, with its trust at the end, as C,,
        guard
            !(try run("-L", in: directory).split(separator: "\n").contains { $0.contains(/\s[\w]*,[\w]*,[\w]*\s*$/) }),
            try !hasKeys(directory)
        else { return }
        for name in ["cert9.db", "key4.db", "pkcs11.txt", Self.mark] { unlink("\(directory)/\(name)") }
        // A directory that isn't empty stays.
        rmdir(directory)
        rmdir("\(home)/.pki")
    }

    /// certutil fails if there are no keys.
    private func hasKeys(_ directory: String) throws -> Bool {
        do {
            try run("-K", in: directory)
            return true
        } catch let failure as CommandFailure where failure.message?.contains("no keys found") == true {
            return false
        }
    }

    /// - Parameter name: nil: every authority of this program.
    /// - Returns: the databases that it was removed from.
    func remove(_ name: String?) throws -> [String] {
        let changed = try remove(named: name)
        try removeOwn()
        return changed
    }

    private func remove(named name: String?) throws -> [String] {
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
        try OtherProgram(name: "certutil", package: "libnss3-tools").run(
            arguments + ["-d", "sql:\(directory)"], input: input)
    }
}
