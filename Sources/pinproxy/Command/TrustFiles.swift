internal import FoundationEssentials
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyIsolation
internal import PinproxySecurity
internal import PinproxyTLS

/// Files that make programs trust the proxy's authority, in `trust/KEY` of a state directory. The key is the
/// authority's, so that two configurations don't overwrite each other's files.
///
/// Files with only certificates are in the proxy's state directory if it can be written. Files that control programs (a
/// wgetrc can name a program to run) are in a directory that only this user and root can change.
struct TrustFiles: Equatable {
    /// Files with names that don't depend on their contents.
    static let names = ["ca-bundle.pem", "authorities.pem"]

    /// The system's roots and the authority, as PEM.
    let bundle: String
    /// The authority; during a rotation every trusted one.
    let authority: String
    /// The bundle's certificates in a store for Java; nil if it can't be written.
    var javaStore: String?
    /// For programs with only a configuration file; nil without a directory for them.
    var configuration: ProgramFiles?
    /// The certificates of ``authority``, for directories of certificates.
    var hashed: [SystemTrust.Authority] = []

    /// Creates or updates them in the first suitable directory.
    static func prepare(
        authority: AuthorityFiles, in directories: [StateFiles], environment: [String: String]
    ) throws -> TrustFiles {
        let roots = systemBundle
        // In the last directory, which is this user's own.
        let stamps = directories.last.map { TrustStamps(directory: $0.own) }
        // Outside a rotation its file identifies the authorities: OpenSSL needn't read them.
        let edition = authority.isAlone ? FileStamp(authority.certificate).text : nil
        if let edition, let kept = stamps?.find(.init(roots: roots, authorities: [edition])) {
            var files = kept.files
            files.configuration = programFiles(files.bundle, kept.key, directories, environment)
            return files
        }
        let (own, isRotating) = try trusted(authority)
        let key = own.first.map(folderKey) ?? ""
        let hashed = own.map { SystemTrust.Authority(hash: $0.subjectHash, pem: $0.pem) }
        let folder = StateFiles.trustFolder(key)
        let sources = TrustStamp.Sources(roots: roots, authorities: edition.map { [$0] } ?? own.map(\.sha256.hex))
        let stamp = stamps?.stamp(key)
        if var files = stamp?.files(of: sources) {
            files.configuration = programFiles(files.bundle, key, directories, environment)
            return files
        }
        let contents = combine(systemRoots(), own)
        var problems: [String] = []
        for directory in directories {
            do throws(FileProblem) {
                let bundle = try write(contents, to: "\(folder)/\(names[0])", in: directory.own, mode: 0o644)
                let alone =
                    isRotating
                    ? try write(pem(own), to: "\(folder)/\(names[1])", in: directory.own, mode: 0o644)
                    : authority.certificate
                var files = TrustFiles(
                    bundle: bundle, authority: alone, javaStore: javaStore(of: contents, folder, in: directory.own),
                    hashed: hashed)
                stamp?.keep(files, of: sources)
                files.configuration = programFiles(bundle, key, directories, environment)
                return files
            } catch {
                problems.append("\(directory.directory): \(error)")
            }
        }
        throw CommandFailure("the trust bundle can't be written: \(problems.joined(separator: "; "))")
    }

    /// Updates the bundles that programs already use. Root does so on behalf of the directory's owner.
    static func refresh(_ authority: AuthorityFiles, in directory: TrustedDirectory) throws {
        let (own, _) = try trusted(authority)
        let bundle = combine(systemRoots(), own)
        for certificate in own {
            let folder = StateFiles.trustFolder(folderKey(certificate))
            for (name, contents) in zip(names, [bundle, pem(own)]) {
                let path = "\(folder)/\(name)"
                do throws(FileProblem) {
                    if try directory.has(path) { try directory.write(contents, to: path, mode: 0o644) }
                } catch {
                    throw CommandFailure("\(directory.path)/\(path) can't be written: \(error)")
                }
            }
        }
    }

    /// The authority's certificates, and those of a rotation.
    private static func trusted(_ authority: AuthorityFiles) throws -> (certificates: [Certificate], isRotating: Bool) {
        do throws(AuthorityError) {
            let all = try authority.trustedCertificates(at: Clock.now)
            return (all, try all.count > authority.loadCertificates().count)
        } catch {
            throw CommandFailure(authority: error)
        }
    }

    private static func folderKey(_ certificate: Certificate) -> String { String(certificate.sha256.hex.prefix(16)) }

    private static func pem(_ certificates: [Certificate]) -> [UInt8] { Array(certificates.map(\.pem).joined().utf8) }

    /// Writes the file unless it is up to date, and returns its path. Never writes to another user's directory.
    static func write(
        _ contents: [UInt8], to name: String, in directory: TrustedDirectory, mode: UInt32
    ) throws(FileProblem) -> String {
        let path = "\(directory.path)/\(name)"
        if let present = try? directory.read(name, limit: limit), present.bytes == contents { return path }
        try directory.create()
        try directory.requireOwn()
        try directory.createFolder(name.split(separator: "/").dropLast().joined(separator: "/"), mode: 0o755)
        try directory.write(contents, to: name, mode: mode)
        return path
    }

    private static let limit = 64 << 20

    /// The name depends on the contents: making the store for every command would take too long.
    private static func javaStore(of bundle: [UInt8], _ folder: String, in directory: TrustedDirectory) -> String? {
        let name = "java-\(SHA256Digest.of(bundle).hex.prefix(12)).p12"
        let path = "\(directory.path)/\(folder)/\(name)"
        if let present = try? directory.openForReading("\(folder)/\(name)") {
            close(present)
            return path
        }
        guard (try? directory.requireOwn()) != nil, let certificates = try? Certificate.all(inPEM: bundle),
            let store = try? JavaTrustStore.encode(certificates),
            (try? directory.write(store, to: "\(folder)/\(name)", mode: 0o644)) != nil
        else { return nil }
        let others = directory.names(in: folder).filter { $0.hasPrefix("java-") && $0.hasSuffix(".p12") && $0 != name }
        // Runs with another bundle may be about to use theirs.
        for old in others.map({ "\(folder)/\($0)" }).sorted(by: { age($0, in: directory) < age($1, in: directory) })
            .dropFirst(keptJavaStores)
        {
            directory.remove(old)
        }
        return path
    }

    /// Stores of bundles other than this run's.
    private static let keptJavaStores = 8

    /// In seconds; the greatest for an unreadable file.
    private static func age(_ name: String, in directory: TrustedDirectory) -> Int {
        guard let file = try? directory.openForReading(name) else { return .max }
        defer { close(file) }
        var status = stat()
        return fstat(file, &status) == 0 ? -status.st_mtim.tv_sec : .max
    }

    private static func programFiles(
        _ bundle: String, _ key: String, _ directories: [StateFiles], _ environment: [String: String]
    ) -> ProgramFiles? {
        for directory in directories.reversed() {
            if let files = try? ProgramFiles.write(
                trusting: bundle, to: directory.own, key: key, environment: environment)
            {
                return files
            }
        }
        return nil
    }

    private static var systemBundle: String? { TrustAnchors.systemBundles.first { access($0, R_OK) == 0 } }

    private static func systemRoots() -> [UInt8] {
        systemBundle.flatMap { try? SmallFile.read($0, limit: limit).bytes } ?? []
    }

    /// Only certificates: other text in a file of certificates is not passed on. Each of our own is there once, even if
    /// the system already has it, as within another run.
    private static func combine(_ roots: [UInt8], _ own: [Certificate]) -> [UInt8] {
        let roots = PEM.certificates(in: roots)
        return roots + pem(own.filter { !roots.contains(Array($0.pem.utf8)) })
    }
}
