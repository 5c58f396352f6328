internal import HTTPWire
internal import Security
internal import Session

/// What is wrong with base URLs once all entries are known: what holds for a request that goes to one is what holds
/// for the base's host, and what the entry that names it says of its own host isn't looked at.
struct BaseURLChecks {
    let hosts: HostTable<HostEntry>
    let defaultAction: HostAction
    let findings: Findings

    func run() {
        for entry in hosts.values {
            guard let block = entry.rules?.entry else { continue }
            for layer in [block.own] + block.rules.map(\.layer) {
                guard let place = layer.session.places[.baseURL], let base = layer.session.values.baseURL else { continue }
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
                    "\(host) is the entry's own host, and requests would come back to it; write another host, or https://")
            } else if let target, target.hasBaseURL {
                objections.append("\(host) has the base_url of \(place); write that URL here")
            }
            if isPinned, target !== entry {
                objections.append("\(host) has pins (\(place)), and http:// would go round them; write an https:// URL")
            }
        }
        switch action {
        case .deny: objections.append("\(host) is denied by \(place)")
        case .tunnel where base.isSecure, .verifyTunnel where base.isSecure:
            objections.append(
                "\(host) has action: \(action.rawValue) (\(place)), so that the proxy can't make requests there")
        case .tunnel, .verifyTunnel, .intercept: break
        }
        // Whoever writes both means that the pins hold for what is sent to the base.
        if base.isSecure, entry.policy.mode != .none, !isPinned {
            objections.append(
                "the entry has pins, which hold for \(entry.pattern) only, and \(host) has none; write them in an entry for "
                    + host)
        }
        return objections
    }
}

extension HostEntry {
    fileprivate var hasBaseURL: Bool {
        guard let block = rules?.entry else { return false }
        return ([block.own] + block.rules.map(\.layer)).contains { $0.session.values.baseURL != nil }
    }
}
