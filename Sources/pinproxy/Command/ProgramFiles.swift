internal import FoundationEssentials
internal import PinproxySecurity

// One idea with StateFiles.swift: files for programs that take no certificate from the environment are beside those
// for others.

/// Configuration files that make programs trust the bundle which know no variable for that. Each takes in what the user
/// has.
struct ProgramFiles: Equatable {
    static let names = ["wgetrc", "apt.conf", "hgrc", "boto", "php/pinproxy.ini"]

    /// WGETRC
    let wget: String
    /// APT_CONFIG
    let apt: String
    /// The last of HGRCPATH.
    let mercurial: String
    /// The last of BOTO_PATH.
    let boto: String
    /// The last of PHP_INI_SCAN_DIR.
    let phpDirectory: String

    /// The first line of the copy of a user's file, so that a copy is never made of a copy.
    private static let origin = "# Made by pinproxy of "
    private static let include = "#include \""

    /// Whether a path is that of such a file, of whatever configuration.
    static func isOurs(_ path: String, _ name: String) -> Bool {
        // Not a regular expression, which takes a millisecond to compile.
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count > 3, parts[parts.count - 1] == name, parts[parts.count - 3] == "trust" else { return false }
        let key = parts[parts.count - 2].utf8
        return key.count == 16
            && key.allSatisfy {
                ("0"..."9").contains(Character(UnicodeScalar($0))) || ("a"..."f").contains(Character(UnicodeScalar($0)))
            }
    }

    /// The user's own file that a wgetrc was made from.
    static func origin(ofWgetrc path: String) -> String? {
        guard let line = firstLine(of: path), line.hasPrefix(origin) else { return nil }
        return String(line.dropFirst(origin.count))
    }

    /// The user's own file that an apt.conf includes.
    static func included(byAptConfiguration path: String) -> String? {
        guard let line = firstLine(of: path), line.hasPrefix(include), line.hasSuffix("\";") else { return nil }
        return String(line.dropFirst(include.count).dropLast(2))
    }

    private static func firstLine(of path: String) -> String? {
        (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n").first.map(String.init)
    }

    static func write(
        trusting bundle: String, to directory: TrustedDirectory, key: String, environment: [String: String]
    ) throws -> ProgramFiles {
        try directory.create()
        try directory.requireOwn()
        let folder = StateFiles.trustFolder(key)
        func write(_ name: String, _ text: String, mode: UInt32 = 0o644) throws -> String {
            try TrustFiles.write(Array(text.utf8), to: "\(folder)/\(name)", in: directory, mode: mode)
        }
        // No syntax of these files can express such a path.
        guard !bundle.contains(where: { $0 == "\"" || $0.isNewline }) else { throw CommandFailure("unfit path") }
        // The user's own file may contain a password.
        let wget = try write("wgetrc", wgetrc(trusting: bundle, environment), mode: 0o600)
        let apt = try write("apt.conf", aptConfiguration(trusting: bundle, environment))
        let mercurial = try write("hgrc", "[web]\ncacerts = \(bundle)\n")
        let boto = try write("boto", "[Boto]\nca_certificates_file = \(bundle)\n")
        _ = try write("php/pinproxy.ini", "openssl.cafile=\"\(bundle)\"\ncurl.cainfo=\"\(bundle)\"\n")
        return ProgramFiles(
            wget: wget, apt: apt, mercurial: mercurial, boto: boto, phpDirectory: "\(directory.path)/\(folder)/php")
    }

    /// wget reads one file, and knows no way to include another.
    private static func wgetrc(trusting bundle: String, _ environment: [String: String]) -> String {
        let named = environment["WGETRC"] ?? environment["HOME"].map { $0 + "/.wgetrc" }
        let path = named.flatMap { isOurs($0, "wgetrc") ? origin(ofWgetrc: $0) : $0 }
        let text = path.flatMap { try? String(contentsOfFile: $0, encoding: .utf8) }
        return "\(origin)\(path ?? "nothing")\n\(text ?? "")\nca_certificate = \(bundle)\n"
    }

    private static func aptConfiguration(trusting bundle: String, _ environment: [String: String]) -> String {
        let path = environment["APT_CONFIG"].flatMap {
            isOurs($0, "apt.conf") ? Self.included(byAptConfiguration: $0) : $0
        }
        let included = path.flatMap { path in
            path.contains(where: { $0 == "\"" || $0.isNewline }) ? nil : "\(include)\(path)\";\n"
        }
        return "\(included ?? "")Acquire::https::CAInfo \"\(bundle)\";\n"
    }
}
