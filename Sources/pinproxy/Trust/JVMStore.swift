internal import FoundationEssentials
internal import Glibc
internal import TLS

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
    /// - Returns: what was removed.
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
