internal import Security
internal import Session

/// pins.yaml, read: which hosts are pinned to what.
struct PinFile {
    var defaults: PinDefaults
    /// How TLS is spoken with hosts that have no entry.
    var defaultTLS: ClientTLS?
    var hosts: HostTable<HostEntry>

    /// Reads the file. Whatever is wrong is among the findings.
    /// - Parameter place: where the file is named, to be blamed if it can't be read.
    static func read(_ file: String, namedAt place: Place, findings: Findings) -> PinFile? {
        let bytes: [UInt8]
        switch FileContents.read(file) {
        case .failure(let reason):
            findings.error(
                place, "pins: \(file) can't be read: \(reason.text) (write pins: null if nothing is to be pinned)")
            return nil
        case .success(let read): bytes = read
        }
        let errors = findings.errorCount
        let value = YAMLDocument.compose(bytes, file: file, findings: findings)
        guard let value, !value.isNull else {
            // It may have been read while somebody was writing it: never "nothing is pinned".
            if findings.errorCount == errors {
                findings.error(
                    Place(file: file, line: 1, column: 1), "the file is empty; write \"hosts: []\" if nothing is to be pinned")
            }
            return nil
        }
        let root = Section("", value, file: file, findings: findings)
        let defaults = PinDefaults(root.section("defaults"), file: file)
        let factory = ClientTLSFactory()
        let defaultTLS = factory.settings(defaults.requirements, identity: nil) { root.error(value, $0) }
        let hosts = hosts(root, file: file, defaults: defaults, factory: factory)
        root.finish()
        return PinFile(defaults: defaults, defaultTLS: defaultTLS, hosts: hosts)
    }

    private static func hosts(
        _ root: Section, file: String, defaults: PinDefaults, factory: ClientTLSFactory
    ) -> HostTable<HostEntry> {
        guard let value = root.nonNull("hosts") else { return HostTable() }
        guard case .sequence(let list) = value.content else {
            root.error(value, "\"hosts\" takes a list of entries (\"- match: …\"), not \(value.kind)")
            return HostTable()
        }
        var entries: [(pattern: HostPattern, value: HostEntry)] = []
        var places: [YAMLValue] = []
        entries.reserveCapacity(list.count)
        for element in list {
            let reader = PinEntryReader(
                root.element("hosts", element), file: file, defaults: defaults, factory: factory)
            guard let match = reader.match(of: element) else {
                reader.finish()
                continue
            }
            let entry = reader.entry(for: match.pattern, at: match.place)
            // Denied hosts of strangers are what such an entry is good for.
            if entry.action != .deny, let warning = match.pattern.publicSuffixWarning() {
                root.warning(match.place, "match: \(warning)")
            }
            if let host = match.pattern.testHost {
                root.error(match.place, "match: \(host.rawValue) is reserved: the proxy answers for it itself (pinproxy doctor)")
            }
            entries.append((match.pattern, entry))
            places.append(match.place)
        }
        let table = HostTable(entries)
        for (later, first) in table.duplicates {
            root.error(
                places[later],
                "match: \(entries[later].pattern.inBothForms) already has the entry in line \(places[first].line)")
        }
        BaseURLChecks(hosts: table, defaultAction: defaults.action, findings: root.findings).run()
        return table
    }
}

extension HostPattern {
    /// The reserved name that it names.
    fileprivate var testHost: TestHost? {
        TestHost.allCases.first { description == $0.rawValue || description.hasPrefix("\($0.rawValue):") }
    }
}

extension Form where Value == HostAction {
    static var action: Form { .word(HostAction.allCases.map { ($0.rawValue, $0) }) }
}
