internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxyTLS

struct CA: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Manage the local authority that programs have to trust.",
        discussion: """
            The proxy answers for each host with a certificate that this authority has issued, so programs have to \
            trust it. Most take it from variables (pinproxy env, pinproxy exec); for all programs of the machine:
              sudo pinproxy ca install
            For the browsers of one user (Chromium, Firefox), and for a JVM:
              pinproxy ca install --nss
              sudo pinproxy ca install --java
            """,
        subcommands: [Create.self, Show.self, Rotate.self, Install.self, Remove.self], defaultSubcommand: Show.self)
}

extension CA {
    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "create",
            abstract: "Create the authority.",
            discussion: """
                pinproxy run does this by itself on its first start. An existing authority is never \
                replaced: pinproxy ca rotate makes the next one, and clients can trust it before it signs.
                """)

        @OptionGroup var options: ConfigurationOptions

        func run() throws {
            let snapshot = try options.load(readsPins: false)
            let files = snapshot.authorityFiles
            try StateFiles(directory: snapshot.stateDirectory).create()
            let authority: LocalAuthority
            let provenance: AuthorityFiles.Provenance
            do {
                (authority, provenance) = try files.create(at: Int64(time(nil)))
            } catch {
                throw CommandFailure("\(error)")
            }
            if case .completed = provenance {
                Standard.error("pinproxy: \(files.key) was there without its certificate; a new one was issued for it")
            }
            Standard.output(
                AuthorityDescription(
                    certificate: authority.certificate, paths: files, store: SystemTrustStore()
                ).text)
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Describe the authority and its files.")

        @OptionGroup var options: ConfigurationOptions
        @Flag(help: "Print the certificate itself instead, as PEM; during a rotation, all to be trusted.") var pem =
            false

        func run() throws {
            let (trusted, paths) = try options.authorities()
            let store = SystemTrustStore()
            Standard.output(
                pem
                    ? trusted.map(\.pem).joined()
                    : AuthorityDescription(certificate: trusted[0], paths: paths, store: store).text
                        + trusted.dropFirst().map {
                            RotationDescription(certificate: $0, paths: paths, store: store).text
                        }.joined())
        }
    }

    struct Install: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "install",
            abstract: "Add the authority to a trust store: the system's (needs root), the browsers', a JVM's.",
            discussion: """
                Copies the certificate to \(SystemTrustStore().directory) and runs \
                update-ca-certificates. Programs that bring their own store (browsers, Python's \
                certifi, Node, Java) don't look there: see the options, and pinproxy env. Running it again is \
                harmless. During a rotation (pinproxy ca rotate) every authority that is to be trusted is added.
                """)

        @OptionGroup var options: ConfigurationOptions
        @OptionGroup var stores: OtherStores

        func run() throws {
            for certificate in try options.authorities().trusted { try install(certificate) }
        }

        private func install(_ certificate: Certificate) throws {
            if stores.nss {
                let databases = try OtherStores.databases().install(certificate)
                Standard.output("installed: \(databases.joined(separator: ", "))")
            }
            if stores.java {
                let store = try JVMStore(StartEnvironment.variables)
                let isNew = try store.install(certificate)
                Standard.output("\(isNew ? "installed" : "already installed"): \(store.home)")
            }
            if stores.isAny { return }
            let store = SystemTrustStore()
            let isNew = try store.install(certificate)
            Standard.output("\(isNew ? "installed" : "already installed"): \(store.path(for: certificate))")
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove the authority from a trust store: the system's (needs root), the browsers', a JVM's.",
            discussion: "The authority's own files stay where they are.")

        @OptionGroup var options: ConfigurationOptions
        @OptionGroup var stores: OtherStores
        @Flag(help: "Remove every authority of this program, also those whose files are gone.") var all = false

        func run() throws {
            if stores.isAny { return try removeFromOthers() }
            let store = SystemTrustStore()
            let paths = all ? store.installed() : try options.authorities().trusted.map(store.path)
            let present = paths.filter { access($0, F_OK) == 0 }
            guard !present.isEmpty else {
                Standard.output("not installed")
                return
            }
            try store.remove(present)
            Standard.output("removed: \(present.joined(separator: ", "))")
        }

        private func removeFromOthers() throws {
            // Nil means every authority.
            let certificates: [Certificate?] = all ? [nil] : try options.authorities().trusted
            var removed: [String] = []
            for certificate in certificates {
                if stores.nss {
                    removed += try OtherStores.databases().remove(certificate.map(NSSDatabases.name))
                }
                if stores.java {
                    let store = try JVMStore(StartEnvironment.variables)
                    removed += try store.remove(certificate.map(JVMStore.name)).map { "\(store.home): \($0)" }
                }
            }
            Standard.output(removed.isEmpty ? "not installed" : "removed: \(removed.joined(separator: ", "))")
        }
    }
}

/// Stores other than the system's.
struct OtherStores: ParsableArguments {
    @Flag(
        help:
            """
            Your browsers' databases (NSS): Chromium's, and those of Firefox's profiles. Needs certutil \
            (libnss3-tools).
            """
    )
    var nss = false
    @Flag(help: "The store of the JVM in JAVA_HOME, or of the java in PATH.") var java = false

    var isAny: Bool { nss || java }

    static func databases() throws -> NSSDatabases {
        let environment = StartEnvironment.variables
        guard let home = environment["HOME"], !home.isEmpty else {
            throw CommandFailure("HOME is not set, so the browsers' databases can't be found")
        }
        return NSSDatabases(home: home, settings: environment["XDG_CONFIG_HOME"])
    }
}

extension ConfigurationOptions {
    /// The authority's certificate, at least, and the others trusted in a rotation. Reads no key: any user may call it.
    fileprivate func authorities() throws -> (trusted: [Certificate], paths: AuthorityFiles) {
        let files = try load(readsPins: false).authorityFiles
        do {
            let above = try files.loadCertificates().dropFirst()
            let trusted = try files.trustedCertificates(at: Clock.now).filter { !above.contains($0) }
            guard !trusted.isEmpty else { throw CommandFailure("\(files.certificate) is empty") }
            return (trusted, files)
        } catch let error as AuthorityError {
            throw CommandFailure(authority: error)
        }
    }
}

extension CommandFailure {
    /// Its certificate can't be read.
    init(authority error: AuthorityError) {
        guard case .unreadable(let path, .system(ENOENT)) = error else {
            self.init("\(error)")
            return
        }
        self.init(
            "there is no authority yet (\(path)); pinproxy run makes it on its first start, pinproxy ca create at once")
    }
}

struct AuthorityDescription {
    let certificate: Certificate
    let paths: AuthorityFiles
    let store: SystemTrustStore

    var text: String {
        let isInstalled = access(store.path(for: certificate), F_OK) == 0
        let lines = [
            ("subject", certificate.subject),
            ("valid", "\(day(certificate.notBefore)) to \(day(certificate.notAfter))"),
            ("SHA-256", colons(certificate.sha256.bytes)),
            ("key identifier", colons(certificate.subjectKeyIdentifier ?? [])),
            ("certificate", paths.certificate),
            ("private key", paths.key),
            ("system trust", isInstalled ? "installed" : "not installed (sudo pinproxy ca install)"),
        ]
        return lines.map { ($0 + ":").padded(to: 16) + $1 + "\n" }.joined()
    }

    private func day(_ time: UnixTime) -> String {
        Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601.year().month().day())
    }

    private func colons(_ bytes: [UInt8]) -> String {
        bytes.map(\.hexadecimal).joined(separator: ":")
    }
}
