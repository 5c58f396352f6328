internal import ArgumentParser
internal import PinproxyBundles

struct BundleRootCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "root", abstract: "Add a root, which assigns keys to roles.",
        discussion: """
            The first root needs all three roles. A later one keeps what isn't given; it is signed by the root keys of \
            the root before it, and by its own (pinproxy bundle sign --role root). Keys are written as pinproxy bundle \
            key prints them. A last root that nobody has signed yet is replaced.

            Never give a role back to a key that was removed from it: what it signed before would be valid again.

            Examples:
              pinproxy bundle root policy.bundle --root ed25519:… --root ed25519:… --root-threshold 2 \
            --bundle ed25519:… --timestamp ed25519:… --expires 365d
              pinproxy bundle root policy.bundle --timestamp ed25519:… --expires 365d
            """)

    @OptionGroup var path: BundlePath
    @Option(help: ArgumentHelp("A key that may sign roots; repeat it for more.", valueName: "key")) var root: [String] =
        []
    @Option(help: ArgumentHelp("How many of them must sign.", valueName: "number")) var rootThreshold: Int?
    @Option(help: ArgumentHelp("A key that may sign bundles.", valueName: "key")) var bundle: [String] = []
    @Option(help: ArgumentHelp("How many of them must sign.", valueName: "number")) var bundleThreshold: Int?
    @Option(help: ArgumentHelp("A key that may sign timestamps.", valueName: "key")) var timestamp: [String] = []
    @Option(help: ArgumentHelp("How many of them must sign.", valueName: "number")) var timestampThreshold: Int?
    @Option(help: ArgumentHelp("When it expires: 365d, or a date.", valueName: "time")) var expires: String

    func validate() throws {
        for texts in [root, bundle, timestamp] { _ = try KeyInput.publicKeys(texts) }
        _ = try ExpiryArgument.time(expires, from: Clock.now)
    }

    func run() throws {
        var document = try path.readIfPresent()
        // It has no signature yet: this one replaces it.
        if document.roots.last?.signatures.isEmpty == true { document.roots.removeLast() }
        let former: BundleRoot?
        do throws(BundleError) { former = try document.lastRoot() } catch { throw BundlePath.failure(path.file, error) }
        guard document.roots.count < BundleDocument.rootsLimit else {
            throw CommandFailure(
                "\(path.file.printable): it has \(BundleDocument.rootsLimit) roots; take out the oldest, which no "
                    + "machine needs any longer (jq 'del(.roots[0])')")
        }
        let next = BundleRoot(
            version: (former?.version ?? 0) + 1, expires: try ExpiryArgument.time(expires, from: Clock.now),
            root: try keys(.root, root, rootThreshold, former?.root),
            bundle: try keys(.bundle, bundle, bundleThreshold, former?.bundle),
            timestamp: try keys(.timestamp, timestamp, timestampThreshold, former?.timestamp))
        document.roots.append(next.envelope)
        try path.write(document)
        let signers = former == nil ? "" : " by the root keys of version \(next.version - 1), and"
        Standard.output(
            "\(path.file.printable): root version \(next.version), expires \(BundleTime.text(next.expires)); to be "
                + "signed\(signers) by \(next.root.threshold) of its \(next.root.keys.count) root keys")
    }

    private func keys(
        _ role: BundleRole, _ texts: [String], _ threshold: Int?, _ former: RoleKeys?
    ) throws -> RoleKeys {
        let keys = try texts.isEmpty ? former?.keys ?? [] : KeyInput.publicKeys(texts)
        guard !keys.isEmpty else {
            throw CommandFailure(
                code: CommandFailure.usage, message: "the first root needs --\(role.rawValue): a key of that role")
        }
        do throws(RoleKeysProblem) {
            return try RoleKeys(keys, threshold: threshold ?? (texts.isEmpty ? former?.threshold ?? 1 : 1))
        } catch {
            throw CommandFailure(code: CommandFailure.usage, message: "--\(role.rawValue): \(error)")
        }
    }
}
