internal import ArgumentParser
internal import PinproxyBundles
internal import PinproxyConfiguration

struct BundleCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Put a pin file, with the files that it names, into the bundle.",
        discussion: """
            The pin file is read as pinproxy check reads it, and what check refuses is refused. Further pin files, \
            pinned certificates and keys, and lists of CT logs are included; they have to be below its directory. \
            crl_files names files of the machines by absolute paths, which are not read here. Secrets are never \
            included: an entry that names one is an error, and belongs in the pin file of the machine that has it.

            What was in the bundle before is replaced, without its signatures. Its roots stay; a new timestamp is \
            needed (pinproxy bundle timestamp).

            Examples:
              pinproxy bundle create policy.bundle --pins pins.yaml --expires 90d
              pinproxy bundle create policy.bundle --pins pins.yaml --expires 90d --group web --stage 10 \
            --note "pins of the new CDN"
            """)

    @OptionGroup var path: BundlePath
    @Option(help: ArgumentHelp("The pin file.", valueName: "file"), completion: .file()) var pins: String
    @Option(help: ArgumentHelp("When the bundle expires: 90d, or a date.", valueName: "time")) var expires: String
    @Option(
        name: .customLong("version"),
        help: ArgumentHelp(
            "Its version.", discussion: "Without it: one more than that of the bundle in the file.",
            valueName: "number"))
    var number: Int?
    @Option(
        help: ArgumentHelp(
            "A group of machines that it is for; repeat it for more.", discussion: "Without it: all machines.",
            valueName: "name"))
    var group: [String] = []
    @Option(help: ArgumentHelp("How many of 100 machines take it, 1 to 100.", valueName: "percent")) var stage: Int?
    @Option(
        help: ArgumentHelp(
            "What the machine's own pin file may do: tighten (add entries and tighten), or any.", valueName: "rule"),
        completion: .list(LocalRule.allCases.map(\.rawValue)))
    var local: String = LocalRule.tighten.rawValue
    @Option(help: ArgumentHelp("A note for people: what the bundle is for.", valueName: "text")) var note: String?

    func validate() throws {
        _ = try ExpiryArgument.time(expires, from: Clock.now)
        if LocalRule(rawValue: local) == nil {
            throw ValidationError("--local: \"\(local.printable)\" is neither tighten nor any")
        }
        if let number, number < 1 { throw ValidationError("--version: \(number) is not 1 or more") }
        if let stage, !(1...100).contains(stage) { throw ValidationError("--stage: \(stage) is not from 1 to 100") }
        if let wrong = group.first(where: { !PolicyBundle.isGroup($0) }) {
            throw ValidationError(
                "--group: \"\(wrong.printable)\" is not the name of a group: letters, digits, \".\", \"_\" and \"-\", "
                    + "at most 64")
        }
    }

    func run() throws {
        var document = try path.readIfPresent()
        let files = try PolicyCollection.files(of: pins)
        do throws(BundleError) {
            let former = try document.bundle.map { envelope throws(BundleError) in try PolicyBundle(envelope) }
            let version = number ?? (former?.version ?? 0) + 1
            document.bundle = try PolicyBundle.envelope(
                version: version, expires: try expiry(), groups: group, files: files,
                local: LocalRule(rawValue: local) ?? .tighten, stage: stage, note: note)
            guard version > former?.version ?? 0 else {
                throw .malformed(
                    part: "--version", "\(version) is not above \(former?.version ?? 0), which is in the file")
            }
        } catch {
            throw BundlePath.failure(path.file, error)
        }
        try path.write(document)
        try Standard.output(document.summary(of: .bundle, in: path.file))
    }

    private func expiry() throws(BundleError) -> Int64 {
        do throws(ValidationError) {
            return try ExpiryArgument.time(expires, from: Clock.now)
        } catch {
            throw .malformed(part: "--expires", error.message)
        }
    }
}

struct BundleTimestampCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timestamp", abstract: "Mark the bundle in the file as the current one, for a limited time.",
        discussion: """
            Machines refuse a bundle whose timestamp has expired, so an old bundle can't be served forever. \
            Make a new timestamp well before, e.g. each day for a week, and after each change of the bundle.

            Examples:
              pinproxy bundle timestamp policy.bundle --expires 7d
              pinproxy bundle sign policy.bundle --role timestamp --key-file timestamp.pem
            """)

    @OptionGroup var path: BundlePath
    @Option(help: ArgumentHelp("When it expires: 7d, or a date.", valueName: "time")) var expires: String

    func validate() throws { _ = try ExpiryArgument.time(expires, from: Clock.now) }

    func run() throws {
        var document = try path.read()
        let time = try ExpiryArgument.time(expires, from: Clock.now)
        do throws(BundleError) {
            guard let envelope = document.bundle else { throw .missing(.bundle) }
            let former = try document.timestamp.map { envelope throws(BundleError) in try BundleTimestamp(envelope) }
            document.timestamp =
                BundleTimestamp(
                    version: (former?.version ?? 0) + 1, expires: time, for: try PolicyBundle(envelope)
                ).envelope
        } catch {
            throw BundlePath.failure(path.file, error)
        }
        try path.write(document)
        try Standard.output(document.summary(of: .timestamp, in: path.file))
    }
}
