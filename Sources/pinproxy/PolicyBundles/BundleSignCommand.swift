internal import ArgumentParser
internal import PinproxyBundles

struct BundleSignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign", abstract: "Add a signature to the root, the bundle or the timestamp in the file.",
        discussion: """
            Other signatures stay: several people sign in turn. It prints what was signed; read what pinproxy bundle \
            show and pinproxy bundle diff print before you sign.

            The last root in the file must give the key the role. A root is signed by its own root keys, and by those \
            of the root before it.

            Examples:
              pinproxy bundle sign policy.bundle --role bundle --key-file reviewer-1.pem
              pass show pinproxy/reviewer-1 | pinproxy bundle sign policy.bundle --role bundle --key-file -
            """)

    @OptionGroup var path: BundlePath
    @Option(
        help: ArgumentHelp("What to sign: root, bundle or timestamp.", valueName: "role"),
        completion: .list(BundleRole.allCases.map(\.rawValue)))
    var role: String
    @Option(
        help: ArgumentHelp(
            "The private key in PEM, in a file that nobody else may read; - for standard input.", valueName: "file"),
        completion: .file())
    var keyFile: String

    func validate() throws {
        if BundleRole(rawValue: role) == nil {
            throw ValidationError("--role: \"\(role.printable)\" is not root, bundle or timestamp")
        }
    }

    func run() throws {
        guard let role = BundleRole(rawValue: role) else { return }
        var document = try path.read()
        let key = try KeyInput.signingKey(keyFile)
        do throws(BundleError) {
            guard let envelope = document[role] else { throw .missing(role) }
            guard let last = try document.lastRoot() else { throw .missing(.root) }
            var roots = [last]
            if role == .root, document.roots.count > 1 {
                roots.append(try BundleRoot(document.roots[document.roots.count - 2]))
            }
            guard roots.contains(where: { $0[role].keys.contains(key.publicKey) }) else {
                let versions = roots.map { "root version \($0.version)" }.joined(separator: " nor of ")
                throw .keys("\(key.publicKey.text) is not a \(role.rawValue) key of \(versions)")
            }
            var signed = envelope
            do throws(BundleKeyError) { try signed.sign(with: key) } catch { throw .keys("\(error)") }
            document[role] = signed
        } catch .keys(let reason) {
            throw CommandFailure("\(path.file.printable): \(reason)")
        } catch {
            throw BundlePath.failure(path.file, error)
        }
        // An unreadable part is not signed.
        let summary = try document.summary(of: role, in: path.file)
        try path.write(document)
        Standard.output(summary)
    }
}

extension BundleDocument {
    /// The root that decides about the file; not verified.
    func lastRoot() throws(BundleError) -> BundleRoot? {
        guard let envelope = roots.last else { return nil }
        return try BundleRoot(envelope)
    }

    /// The envelope of a role: of root, the last.
    subscript(role: BundleRole) -> Envelope? {
        get {
            switch role {
            case .root: roots.last
            case .bundle: bundle
            case .timestamp: timestamp
            }
        }
        set {
            guard let newValue else { return }
            switch role {
            case .root where roots.isEmpty: roots.append(newValue)
            case .root: roots[roots.count - 1] = newValue
            case .bundle: bundle = newValue
            case .timestamp: timestamp = newValue
            }
        }
    }

    /// Describes a role's part and its signatures.
    func summary(of role: BundleRole, in file: String) throws -> String {
        do throws(BundleError) {
            let report = try BundleReport(self)
            let part =
                switch role {
                case .root: report.roots.last?.summary
                case .bundle: report.bundle?.summary
                case .timestamp: report.timestamp?.summary
                }
            return "\(file.printable): \(part ?? "no \(role.rawValue)")"
        } catch {
            throw BundlePath.failure(file, error)
        }
    }
}
