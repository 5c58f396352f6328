internal import FoundationEssentials
internal import Glibc
internal import Security
internal import TLS

/// The files from which programs learn to trust the proxy's authority, in `trust/KEY` of a state directory. The key is the
/// authority's, so that two configurations don't overwrite each other's.
///
/// What is only certificates lies in the proxy's state directory if it can be written. What programs take orders from (a
/// wgetrc can name a program to be run) lies in one that nobody but this user and root can change.
struct TrustFiles: Equatable {
    /// Those whose names don't depend on what is in them.
    static let names = ["ca-bundle.pem"]

    /// The system's roots and the authority, as PEM.
    let bundle: String
    /// The authority alone.
    let authority: String
    /// The same certificates as the bundle's for Java; nil if it can't be written.
    var javaStore: String?
    /// For programs that know a configuration file only; nil where there is no directory for them.
    var configuration: ProgramFiles?

    /// Makes sure that they are there and up to date.
    /// - Parameters:
    ///   - authority: the path of the authority's certificate.
    ///   - directories: where they may be kept; the first that fits.
    ///   - environment: of the user, whose own files are kept.
    static func prepare(
        authority: String, in directories: [StateFiles], environment: [String: String]
    ) throws -> TrustFiles {
        let own: [UInt8]
        let certificate: Certificate
        do {
            own = [UInt8](try Data(contentsOf: URL(fileURLWithPath: authority)))
        } catch {
            throw CommandFailure(
                "the proxy's authority \(authority) can't be read; "
                    + "pinproxy run makes it on its first start, pinproxy ca create at once")
        }
        do {
            certificate = try Certificate(derOrPEM: own)
        } catch {
            throw CommandFailure("the proxy's authority \(authority): \(error)")
        }
        let key = String(certificate.sha256.hex.prefix(16))
        let contents = combine(systemRoots(), own)
        var problems: [String] = []
        for directory in directories {
            let folder = directory.trustFolder(key)
            do {
                let bundle = try write(contents, to: "\(folder)/\(names[0])", in: directory, mode: 0o644)
                return TrustFiles(
                    bundle: bundle, authority: authority, javaStore: javaStore(of: contents, folder),
                    configuration: programFiles(bundle, key, directories, environment))
            } catch {
                problems.append((error as? CommandFailure)?.message ?? "\(error)")
            }
        }
        throw CommandFailure("the trust bundle can't be written: \(problems.joined(separator: "; "))")
    }

    /// Writes what isn't there already, and says where it is.
    static func write(_ contents: [UInt8], to path: String, in directory: StateFiles, mode: UInt32) throws -> String {
        if let present = try? Data(contentsOf: URL(fileURLWithPath: path)), present.elementsEqual(contents) { return path }
        try directory.create()
        // Those below the state directory, the outer ones first.
        var folder = directory.directory
        for name in path.dropFirst(folder.count).split(separator: "/").dropLast() {
            folder += "/\(name)"
            guard mkdir(folder, 0o755) == 0 || errno == EEXIST else { throw CommandFailure("\(folder): \(systemReason())") }
        }
        try NewFile.write(contents, to: path, mode: mode)
        return path
    }

    /// Named by what it is made of: to make it takes a moment, and with every command.
    private static func javaStore(of bundle: [UInt8], _ folder: String) -> String? {
        let name = "java-\(SHA256Digest.of(bundle).hex.prefix(12)).p12"
        let path = "\(folder)/\(name)"
        if access(path, R_OK) == 0 { return path }
        guard let certificates = try? Certificate.all(inPEM: bundle), let store = try? JavaTrustStore.encode(certificates),
            (try? NewFile.write(store, to: path, mode: 0o644)) != nil
        else { return nil }
        for old in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where old.hasPrefix("java-") && old.hasSuffix(".p12") && old != name {
            unlink("\(folder)/\(old)")
        }
        return path
    }

    private static func programFiles(
        _ bundle: String, _ key: String, _ directories: [StateFiles], _ environment: [String: String]
    ) -> ProgramFiles? {
        for directory in directories.reversed() {
            guard (try? directory.create()) != nil, directory.isOnlyOurs else { continue }
            if let files = try? ProgramFiles.write(trusting: bundle, to: directory, key: key, environment: environment) { return files }
        }
        return nil
    }

    private static func systemRoots() -> [UInt8] {
        for path in TrustAnchors.systemBundles {
            if let data = try? Data(contentsOf: URL(fileURLWithPath: path)) { return [UInt8](data) }
        }
        return []
    }

    private static func combine(_ roots: [UInt8], _ own: [UInt8]) -> [UInt8] {
        var contents = roots
        if let last = contents.last, last != UInt8(ascii: "\n") { contents.append(UInt8(ascii: "\n")) }
        return contents + own
    }
}

extension StateFiles {
    /// - Parameter key: of the authority.
    func trustFolder(_ key: String) -> String { "\(directory)/trust/\(key)" }

    /// Whether nobody but this user and root can change what is in the directory.
    fileprivate var isOnlyOurs: Bool {
        var status = stat()
        guard stat(directory, &status) == 0 else { return false }
        return (status.st_uid == geteuid() || status.st_uid == 0) && status.st_mode & 0o022 == 0
    }
}
