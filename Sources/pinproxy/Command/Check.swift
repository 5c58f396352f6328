internal import ArgumentParser
internal import PinproxyConfiguration
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxySerialization

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", _superCommandName: Pinproxy.name,
        abstract: "Read the configuration as run would, and print every problem.",
        discussion: """
            Each problem is a line on standard error: FILE:LINE:COLUMN: error: … or warning: … It also warns of what \
            expires soon or has expired (pins, client certificates, revocation lists, the certificates of proxy.tls \
            and admin.tls), of revocation lists that aren't valid for their issuer, of a local authority that clients \
            refuse, or will soon, and of rules whose bodies no installed library decodes. Exits 0 if the proxy would \
            start with it (there may be warnings), else 78.

            Examples:
              pinproxy check
              pinproxy check --config /etc/pinproxy/pinproxy.yaml && systemctl reload pinproxy
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let now = Clock.now
        let snapshot = try options.load(showingWarnings: true)
        let ending = ExpiryWatch.findings(in: snapshot, at: now).map {
            Problem(.warning, at: $0.place, ($0.entry.map { "\($0): " } ?? "") + $0.message(at: now))
        }
        let lists = RevocationListReview.findings(in: snapshot).map { Problem(.warning, at: $0.place, $0.message) }
        let found =
            ending + lists + DecoderRemarks.problems(in: snapshot) + AuthorityRemarks.problems(in: snapshot, at: now)
        for warning in found { Standard.error("\(warning)") }
        let warnings = snapshot.warnings(at: now).count + found.count
        let remark = warnings == 0 ? "" : ", \(Count(warnings, "warning"))"
        Standard.output("\(snapshot.files.joined(separator: ", ")): the configuration can be used\(remark)")
    }
}

/// Rules with bodies that can't be judged on this machine: a library that decodes them isn't installed.
enum DecoderRemarks {
    /// One for each serializer, at the first place that wants it.
    static func problems(
        in snapshot: Snapshot, missing: (ResponseRules.Serializer) -> [DecoderLibraries.Missing] = missing(for:)
    ) -> [Problem] {
        let entries = snapshot.hosts.values.lazy.filter { $0.action == .intercept }.compactMap(\.rules)
        let defaults = (snapshot.defaultRules ?? entries.first)?.defaults
        var wanted: [ResponseRules.Serializer: [Place]] = [:]
        for block in [defaults].compactMap(\.self) + entries.map(\.entry) {
            for layer in [block.own] + block.rules.map(\.layer) {
                guard let place = layer.response.places[.serializer] else { continue }
                for serializer in layer.response.values.serializers { wanted[serializer, default: []].append(place) }
            }
        }
        return ResponseRules.Serializer.allCases.compactMap { serializer in
            // Libraries that no rule needs aren't loaded.
            wanted[serializer].flatMap { problem(serializer, $0, missing(serializer)) }
        }
    }

    private static func missing(for serializer: ResponseRules.Serializer) -> [DecoderLibraries.Missing] {
        switch serializer {
        case .http, .json: []
        case .xml, .propertyList: DecoderLibraries.missingForDocuments()
        case .image: DecoderLibraries.missingForImages()
        }
    }

    private static func problem(
        _ serializer: ResponseRules.Serializer, _ places: [Place], _ missing: [DecoderLibraries.Missing]
    ) -> Problem? {
        guard let first = places.first, !missing.isEmpty else { return nil }
        let others = places.count > 1 ? ", here and in \(Count(places.count - 1, "other place"))" : ""
        return Problem(
            .warning, at: first,
            "serializer: \(serializer.rawValue) refuses \(missing.map(\.format).joined(separator: ", "))\(others): "
                + "what decodes it is not installed (apt install \(missing.map(\.package).joined(separator: " ")))")
    }
}
