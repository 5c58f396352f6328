internal import ArgumentParser
internal import Configuration

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read the configuration as run would, and print every problem.",
        discussion: """
            Each problem is a line on standard error: FILE:LINE:COLUMN: error: … or warning: … \
            Exits 0 if the proxy would start with it (there may be warnings), else 78.

            Examples:
              pinproxy check
              pinproxy check --config /etc/pinproxy/pinproxy.yaml && systemctl reload pinproxy
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let snapshot = try options.load(showingWarnings: true)
        let warnings = snapshot.warnings.count
        let remark = warnings == 0 ? "" : warnings == 1 ? ", 1 warning" : ", \(warnings) warnings"
        Standard.output("\(snapshot.files.joined(separator: ", ")): the configuration can be used\(remark)")
    }
}
