internal import ArgumentParser
internal import Configuration
internal import Records
internal import Security

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read the configuration as run would, and print every problem.",
        discussion: """
            Each problem is a line on standard error: FILE:LINE:COLUMN: error: … or warning: … \
            It warns too of what expires soon or has expired (pins, client certificates, revocation \
            lists, the certificates of proxy.tls and admin.tls), of revocation lists that can't serve for their issuer, of a \
            local authority that clients refuse, or will soon, and of rules whose bodies no installed library decodes. Exits \
            0 if the proxy would start with it (there may be warnings), else 78.

            Examples:
              pinproxy check
              pinproxy check --config /etc/pinproxy/pinproxy.yaml && systemctl reload pinproxy
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let snapshot = try options.load(showingWarnings: true)
        let now = Clock.now
        let ending = ExpiryWatch.findings(in: snapshot, at: now).map {
            Problem(.warning, at: $0.place, ($0.entry.map { "\($0): " } ?? "") + $0.message(at: now))
        }
        let lists = RevocationListReview.findings(in: snapshot).map { Problem(.warning, at: $0.place, $0.message) }
        let found = ending + lists + DecoderRemarks.problems(in: snapshot) + AuthorityRemarks.problems(in: snapshot, at: now)
        for warning in found { Standard.error("\(warning)") }
        let warnings = snapshot.warnings.count + found.count
        let remark = warnings == 0 ? "" : ", \(Count(warnings, "warning"))"
        Standard.output("\(snapshot.files.joined(separator: ", ")): the configuration can be used\(remark)")
    }
}
