internal import ArgumentParser
internal import PinproxyBundles
internal import PinproxySecurity
internal import PinproxyTLS

struct BundleVerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Verify a bundle as a machine that has seen none before.",
        discussion: """
            --key names the keys that the machine starts from (keys in pinproxy.yaml): one of the roots in the file is \
            signed by --threshold of them, and each later one by the one before it. Exits 0 if signatures, versions \
            and dates are valid, else 1 with the reason.

            --after OLD verifies the bundle as a machine that has OLD in force: a lower version is refused then, \
            and so is different content with the same version.

            --json prints what pinproxy bundle show --json prints.

            Examples:
              pinproxy bundle verify policy.bundle --key ed25519:… --key ed25519:… --threshold 2
              pinproxy bundle verify policy.bundle --key ed25519:… --after served.bundle
            """)

    @OptionGroup var path: BundlePath
    @Option(help: ArgumentHelp("A key to start from; repeat it for more.", valueName: "key")) var key: [String] = []
    @Option(help: ArgumentHelp("How many of them must have signed.", valueName: "number")) var threshold = 1
    @Option(
        help: ArgumentHelp("The bundle that was in force before; its dates don't count.", valueName: "file"),
        completion: .file())
    var after: String?
    @Option(help: ArgumentHelp("Verify for another time, e.g. 2027-06-30.", valueName: "date")) var at: String?
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if key.isEmpty { throw ValidationError("a key to begin with is missing: --key ed25519:…") }
        let keys = try KeyInput.publicKeys(key)
        do throws(RoleKeysProblem) { _ = try RoleKeys(keys, threshold: threshold) } catch {
            throw ValidationError("--key, --threshold: \(error)")
        }
        if let at, DateText.parse(at) == nil {
            throw ValidationError("--at: \"\(at.printable)\" is not a date; write it as 2027-06-30")
        }
    }

    func run() throws {
        let verifier = BundleVerifier(keys: try KeyInput.publicKeys(key), threshold: threshold)
        let now = at.flatMap(DateText.parse) ?? Clock.now
        let known = try after.map { try state(of: $0, verifier) }
        let bytes = try BundlePath.bytes(path.file)
        let report: BundleReport
        do throws(BundleError) {
            _ = try verifier.verify(bytes, after: known, at: now)
            report = try BundleReport(BundleDocument(bytes))
        } catch {
            throw BundlePath.failure(path.file, error)
        }
        if json { return Standard.output(JSONText.of(report)) }
        let lines =
            report.roots.map(\.summary) + (report.roots.last?.signatures.lines ?? []) + (report.timestamp?.lines ?? [])
            + [report.bundle?.summary].compactMap(\.self) + (report.bundle?.signatures?.lines ?? [])
        Standard.output((["\(path.file.printable): verified"] + lines).joined(separator: "\n"))
    }

    /// At an instant when it was valid.
    private func state(of file: String, _ verifier: BundleVerifier) throws -> BundleState {
        let bytes = try BundlePath.bytes(file)
        do throws(BundleError) {
            return try verifier.verify(bytes, after: nil, at: 0).state
        } catch {
            throw BundlePath.failure(file, error)
        }
    }
}

struct BundleShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show what is in a bundle, with digests; verifies only signatures.",
        discussion: """
            Signatures are checked against the last root in the file itself; pinproxy bundle verify starts from keys \
            that you name. --extract prints a file of the bundle, as it is.

            --json prints one object: roots, a list with version, expires, root, bundle and timestamp (keys, \
            threshold), signatures and former_signatures (root, threshold, keys: the valid ones); bundle with \
            version, expires, groups, local, stage, note, sha256, files (path, bytes, sha256), signatures; timestamp \
            with version, expires, bundle_version, bundle_sha256, is_current, signatures.

            Examples:
              pinproxy bundle show policy.bundle
              pinproxy bundle show policy.bundle --extract pins.yaml
            """)

    @OptionGroup var path: BundlePath
    @Option(help: ArgumentHelp("Print this file of the bundle instead.", valueName: "path")) var extract: String?
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if extract != nil, json { throw ValidationError("--extract prints a file as it is: leave --json out") }
    }

    func run() throws {
        let document = try path.read()
        do throws(BundleError) {
            if let extract { return try self.extract(extract, from: document) }
            let report = try BundleReport(document)
            if json { return Standard.output(JSONText.of(report)) }
            let lines =
                report.roots.flatMap(\.lines) + (report.timestamp?.lines ?? ["no timestamp"])
                + (report.bundle?.lines ?? ["no bundle"])
            Standard.output(lines.joined(separator: "\n"))
        } catch {
            throw BundlePath.failure(path.file, error)
        }
    }

    private func extract(_ wanted: String, from document: BundleDocument) throws(BundleError) {
        guard let envelope = document.bundle else { throw .missing(.bundle) }
        guard let file = try PolicyBundle(envelope).files.first(where: { $0.path == wanted }) else {
            throw .malformed(part: "--extract", "\(wanted.printable) is not in the bundle")
        }
        Standard.output(bytes: file.bytes)
    }
}
