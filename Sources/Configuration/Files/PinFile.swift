internal import PinproxyBundles
internal import PinproxyEventLoop
internal import PinproxyHTTPWire
internal import PinproxySecurity
internal import PinproxySession

/// pins.yaml, read: which hosts are pinned to what.
struct PinFile {
    var defaults: PinDefaults
    /// The TLS settings for hosts without an entry.
    var defaultTLS: ClientTLS?
    var hosts: HostTable<HostEntry>

    /// The machine's own files that it was read from, the main one first.
    var files: [String]

    /// A file, and whether it is of a bundle.
    private typealias Part = (root: Section, file: String, isOfBundle: Bool)

    /// Reads the machine's own file, and the further ones that belong to it. Whatever is wrong is among the findings.
    /// - Parameters:
    ///   - own: the file, and where it is named, named in errors if it can't be read; nil: without one.
    ///   - bundle: its pin file is read too; its defaults hold, and what is weaker in the own files is an error.
    static func read(
        _ own: (place: Place, path: String)?, beside bundle: BundleInForce? = nil, findings: Findings
    ) -> PinFile? {
        var parts: [Part] = []
        var files: [String] = []
        if let own {
            guard let root = section(of: own.path, namedAt: own.place, "pins: ", findings) else { return nil }
            let list = FurtherPinFiles(of: own.path, root, namedAt: own.place).sections(findings)
            parts = [(root, own.path, false)] + list.map { ($0.root, $0.file, false) }
            files = [own.path] + list.map(\.file)
        }
        if let bundle {
            let place = Place(file: BundleInForce.pinFile)
            guard let root = section(of: place.file, namedAt: place, "", findings) else { return nil }
            let list = FurtherPinFiles(of: place.file, root, namedAt: place).sections(findings)
            if bundle.local == .tighten, own != nil, let value = parts.first?.root.value("defaults") {
                parts[0].root.error(value, "defaults: the bundle's hold (version \(bundle.version))")
            }
            parts += [(root, place.file, true)] + list.map { ($0.root, $0.file, true) }
        }
        // The bundle's, unless the machine has its own.
        let deciding = parts.first { $0.isOfBundle && bundle?.local != .any } ?? parts.first { $0.root.has("defaults") }
        let main = deciding ?? parts.first
        let defaults = main.map { PinDefaults($0.root.section("defaults"), file: $0.file) } ?? PinDefaults()
        let factory = ClientTLSFactory()
        let defaultTLS = factory.settings(defaults.requirements, identity: nil) { problem in
            main.map { main in main.root.start.map { main.root.error($0, problem) } }
        }
        let hosts = hosts(parts, beside: bundle, defaults: defaults, factory: factory, findings)
        for part in parts where part.root !== main?.root && part.isOfBundle && part.root.has("defaults") {
            // The machine's own hold (`local: any`).
            _ = PinDefaults(part.root.section("defaults"), file: part.file)
        }
        for part in parts { part.root.finish() }
        // Who signs bundles decides about hosts, and not about files of the machine: a rule could send them somewhere.
        for file in findings.namedFiles where file.place.file.hasPrefix(BundleInForce.prefix) {
            guard let objection = file.objectionToCarrying(beside: BundleInForce.pinFile) else { continue }
            findings.error(file.place, "\(file.key): \(file.name) is \(objection)")
        }
        return PinFile(defaults: defaults, defaultTLS: defaultTLS, hosts: hosts, files: files)
    }

    /// - Parameter prefix: begins what is said at the place.
    static func section(
        of file: String, namedAt place: Place, _ prefix: String, _ findings: Findings
    ) -> Section? {
        let bytes: [UInt8]
        switch FileContents.read(findings.sources.source(file)) {
        case .failure(let reason):
            let hint = prefix.isEmpty ? "" : " (write pins: null if nothing is to be pinned)"
            findings.error(place, "\(prefix)\(file) can't be read: \(reason.text)\(hint)")
            return nil
        case .success(let read): bytes = read
        }
        findings.sources.note(bytes)
        let errors = findings.errorCount
        let value = YAMLDocument.compose(bytes, file: file, findings: findings)
        guard let value, !value.isNull else {
            // It may have been read while it was written: an empty file never means "nothing is pinned".
            if findings.errorCount == errors {
                findings.error(
                    Place(file: file, line: 1, column: 1),
                    "the file is empty; write \"hosts: []\" if nothing is to be pinned")
            }
            return nil
        }
        return Section("", value, file: file, findings: findings)
    }

    /// The list of a file; empty, with an error, if it is missing.
    private static func list(_ root: Section) -> [YAMLValue] {
        guard let value = root.nonNull("hosts") else { return [] }
        if case .sequence(let list) = value.content { return list }
        var slip: String?
        switch value.content {
        case .mapping(let pairs): slip = pairs.first.flatMap { YAMLSlip.dashHint("\($0.key):") }
        case .scalar(let text): slip = YAMLSlip.dashHint(text)
        case .null, .sequence, .set: break
        }
        root.error(
            value,
            "\"hosts\" takes a list of entries (\"- match: …\"), not \(value.kind)\(slip.map { "; \($0)" } ?? "")")
        return []
    }

    private static func hosts(
        _ parts: [Part], beside bundle: BundleInForce?, defaults: PinDefaults, factory: ClientTLSFactory,
        _ findings: Findings
    ) -> HostTable<HostEntry> {
        var read: [(reader: PinEntryReader, pattern: HostPattern, place: YAMLValue)] = []
        /// The own entries come first: they win over the bundle's for the same pattern.
        var ownCount = 0
        for part in parts {
            let list = list(part.root)
            read.reserveCapacity(read.count + list.count)
            for element in list {
                let reader = PinEntryReader(part.root.element("hosts", element), file: part.file, defaults: defaults)
                if let match = reader.match(of: element) {
                    read.append((reader, match.pattern, match.place))
                } else {
                    reader.finish()
                }
            }
            if !part.isOfBundle { ownCount = read.count }
        }
        // All patterns are collected first, since each entry refers to its own among them.
        let numbering = HostPatterns.number(read.map(\.pattern))
        let shared = SharedParts(patterns: numbering.patterns, tls: factory)
        var entries: [HostEntry] = []
        entries.reserveCapacity(read.count)
        for (number, (reader, pattern, place)) in zip(numbering.numbers, read) {
            let entry = reader.entry(number, at: place, parts: shared)
            // Denied hosts of strangers are what such an entry is good for.
            if entry.action != .deny, let warning = pattern.publicSuffixWarning() {
                reader.section.warning(place, "match: \(warning)")
            }
            if let host = pattern.testHost {
                reader.section.error(
                    place, "match: \(host.rawValue) is reserved: the proxy answers for it itself (pinproxy doctor)")
            }
            entries.append(entry)
        }
        for (later, first) in numbering.duplicates where (later < ownCount) == (first < ownCount) {
            let (later, first) = (read[later], read[first])
            let line = first.place.line
            let place = first.reader.file == later.reader.file ? "line \(line)" : "\(first.reader.file):\(line)"
            later.reader.section.error(
                later.place, "match: \(later.pattern.inBothForms) already has the entry in \(place)")
        }
        if bundle?.local == .tighten, ownCount > 0 {
            let ofBundle = zip(read, entries).dropFirst(ownCount).map { (pattern: $0.pattern, entry: $1) }
            let rule = LocalEntries(beside: ofBundle, defaults)
            for ((reader, pattern, place), entry) in zip(read, entries).prefix(ownCount) {
                guard let weakness = rule.weakness(of: entry, pattern) else { continue }
                reader.section.error(place, "match: \(pattern.inBothForms): \(weakness)")
            }
        }
        let table = sideBySide(numbering.table(of: entries))
        BaseURLChecks(hosts: table, defaultAction: defaults.action, findings: findings).run()
        return table
    }

    /// The entries, copied: where they were made, between freed memory of the reader, each would hold back a page.
    private static func sideBySide(_ table: HostTable<HostEntry>) -> HostTable<HostEntry> {
        guard table.values.count >= 1000 else { return table }
        let copy = { @Sendable in table.mapValues { HostEntry($0, policy: $0.policy.copied()) } }
        do { return try SystemThread.run("pin file", stackSize: 128 << 10, copy) } catch { return table }
    }
}

extension HostPattern {
    /// The reserved name that it names.
    fileprivate var testHost: TestHost? {
        TestHost.allCases.first { description == $0.rawValue || description.hasPrefix("\($0.rawValue):") }
    }
}

/// Finds problems with base URLs once all entries are known. A request to a base URL follows the policy of the base's
/// host, not that of the host that the entry is for.
struct BaseURLChecks {
    let hosts: HostTable<HostEntry>
    let defaultAction: HostAction
    let findings: Findings

    func run() {
        for entry in hosts.values {
            guard let block = entry.rules?.entry else { continue }
            for layer in [block.own] + block.rules.map(\.layer) {
                guard let place = layer.session.places[.baseURL], let base = layer.session.values.baseURL else {
                    continue
                }
                for objection in objections(to: base, of: entry) { findings.error(place, "base_url: \(objection)") }
            }
        }
    }

    private func objections(to base: BaseURL, of entry: HostEntry) -> [String] {
        let host = base.authority.host
        let target = hosts.value(forHost: host, port: base.authority.port)
        let isPinned = target.map { $0.policy.mode != .none } ?? false
        let action = target?.action ?? defaultAction
        let place = target.map { "the entry in \($0.location)" } ?? "defaults"
        var objections: [String] = []
        if !base.isSecure {
            if target === entry {
                objections.append(
                    """
                    \(host) is the entry's own host, and requests would come back to it; write another host, or \
                    https://
                    """
                )
            } else if let target, target.hasBaseURL {
                objections.append("\(host) has the base_url of \(place); write that URL here")
            }
            if isPinned, target !== entry {
                objections.append("\(host) has pins (\(place)), and http:// would bypass them; write an https:// URL")
            }
        }
        switch action {
        case .deny: objections.append("\(host) is denied by \(place)")
        case .tunnel where base.isSecure, .verifyTunnel where base.isSecure:
            objections.append(
                "\(host) has action: \(action.rawValue) (\(place)), so that the proxy can't make requests there")
        case .tunnel, .verifyTunnel, .intercept: break
        }
        // Both together mean that the pins hold for what is sent to the base.
        if base.isSecure, entry.policy.mode != .none, !isPinned {
            objections.append(
                "the entry has pins, which hold for \(entry.pattern) only, and \(host) has none; write them in an "
                    + "entry for \(host)")
        }
        return objections
    }
}

extension HostEntry {
    var hasBaseURL: Bool {
        guard let block = rules?.entry else { return false }
        return ([block.own] + block.rules.map(\.layer)).contains { $0.session.values.baseURL != nil }
    }
}
