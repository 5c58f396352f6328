internal import ArgumentParser
internal import PinproxyBundles
internal import PinproxyConfiguration

struct BundleDiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Show what a new bundle changes, and for whom.",
        discussion: """
            Both are read as a machine reads them, so that comments, order and spelling make no difference: entries \
            are compared by what they require. Signatures aren't verified. + marks a new entry or pin, - a removed \
            one, ~ a changed entry.

            --json prints one object: old and new (version, sha256, groups, stage); bundle and defaults, lists with \
            key, before, after; added and removed, lists with match, action, pinning, enforcement, rollout, pins; \
            changed, a list with match, changes (key, before, after), pins_added, pins_removed; files (key is the \
            path).

            Example:
              pinproxy bundle diff served.bundle policy.bundle
            """)

    @Argument(help: ArgumentHelp("The bundle that is in force.", valueName: "old"), completion: .file()) var old: String
    @Argument(help: ArgumentHelp("The new bundle.", valueName: "new"), completion: .file()) var new: String
    @Flag(help: "Print JSON.") var json = false

    func run() throws {
        let changes = BundleChanges(try policy(old), try policy(new))
        Standard.output(json ? JSONText.of(changes) : changes.text)
    }

    private func policy(_ file: String) throws -> (bundle: PolicyBundle, policy: PolicyFiles) {
        let document = try BundlePath.read(file)
        let bundle: PolicyBundle
        do throws(BundleError) {
            guard let envelope = document.bundle else { throw .missing(.bundle) }
            bundle = try PolicyBundle(envelope)
        } catch {
            throw BundlePath.failure(file, error)
        }
        return (bundle, try PolicyCollection.load(bundle.files, from: file))
    }
}
