import PinproxyConfiguration
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// The answer of `GET /config`: the configuration in force, without secrets and values that rules send.
struct ConfigurationReport: Encodable {
    static let entryLimit = 10_000

    struct Entry: Encodable {
        struct Pin: Encodable {
            /// The value, in one form.
            let pin: String
            let written: String
            let notAfter: UnixTime?
        }

        let match: String
        /// `FILE:LINE`
        let location: String
        let action: String
        let pinning: String
        let pins: [Pin]
        /// The present enforcement; `rollout` has the changes to come.
        let enforcement: String
        /// When, where or after what its pins are enforced.
        let rollout: String?
        let position: String
        let expires: UnixTime?
        let onExpiry: String?
        let clientCertificate: String?
        let reportURI: String?
        let record: Bool
        let onRefusal: String?
        let clients: String?
        let rules: [String]
        /// Switches that remove protection, in words.
        let insecure: [String]
    }

    /// Configurations in force since the start.
    let generation: Int
    let readAt: UnixTime
    let files: [String]
    let settings: [String: String]
    let warnings: [String]
    let defaults: [String: String]
    let defaultRules: [String]
    let entryCount: Int
    let entries: [Entry]

    init(_ snapshot: Snapshot, generation: Int, readAt: UnixTime, history: PinHistory, at now: UnixTime) {
        self.generation = generation
        self.readAt = readAt
        files = snapshot.files
        settings = Self.settings(of: snapshot)
        warnings = snapshot.warnings(at: now).map(\.description)
        defaults = [
            "action": snapshot.defaultAction.rawValue, "min_tls": "\(snapshot.defaultPolicy.requirements.minimumTLS)",
            "ocsp": snapshot.defaultPolicy.requirements.stapling.rawValue,
        ]
        defaultRules = Self.rules(snapshot.defaultRules)
        entryCount = snapshot.hosts.values.count
        entries = snapshot.hosts.values.prefix(Self.entryLimit).map { Entry($0, history, at: now) }
    }

    private static func settings(of snapshot: Snapshot) -> [String: String] {
        let (proxy, limits, timeouts) = (snapshot.proxy, snapshot.limits, snapshot.timeouts)
        func list(_ values: some Sequence<some CustomStringConvertible>) -> String {
            "[\(values.map(\.description).joined(separator: ", "))]"
        }
        func onOff(_ isOn: Bool) -> String { isOn ? "set" : "null" }
        func listen(_ settings: ListenSettings) -> [String] {
            let addresses = settings.addresses.map { address in
                settings.proxyProtocol[address].map { "\(address) with PROXY headers of \(list($0))" }
                    ?? address.description
            }
            return addresses + settings.paths.map { "unix:\($0)" } + (settings.takesInherited ? ["systemd"] : [])
        }
        let parent = snapshot.upstream.parent.map { parent in
            let host = parent.host.contains(":") ? "[\(parent.host)]" : parent.host
            return "http://\(parent.hasCredentials ? "•••@" : "")\(host):\(parent.port)"
        }
        let telemetry = snapshot.telemetry
        return [
            "telemetry.otlp": telemetry.map { "\($0.collector)" } ?? "null",
            "telemetry.authorization_file": onOff(telemetry?.authorization != nil),
            "telemetry.interval": telemetry.map { Quantity.text($0.interval) } ?? "null",
            "telemetry.signals": list(telemetry?.signals.map(\.rawValue) ?? []),
            "telemetry.attributes": list(telemetry?.attributes.map { "\($0.key): \($0.value)" }.sorted() ?? []),
            "proxy.listen": list(listen(proxy.listen)), "proxy.tls": onOff(proxy.tls != nil),
            "proxy.workers": proxy.workers.map(String.init) ?? "auto", "proxy.users": proxy.users?.path ?? "null",
            "proxy.allow_clients": list(proxy.allowClients), "proxy.via": "\(proxy.via)",
            "proxy.http": list(proxy.http),
            "admin.listen": list(
                snapshot.admin.listen.map(\.description) + (snapshot.admin.takesInherited ? ["systemd"] : [])),
            "admin.tls": onOff(snapshot.admin.tls != nil),
            "admin.token_file": onOff(snapshot.admin.token != nil), "admin.hosts": list(snapshot.admin.hosts),
            "authority.certificate": snapshot.authority.certificatePath,
            "authority.leaf_lifetime": Quantity.text(snapshot.authority.leafLifetime),
            "authority.name_constraints": snapshot.authority.permitted.map { list($0.items.map(\.description)) }
                ?? "null",
            "upstream.trust": "\(snapshot.upstream.anchors.certificates.count) authorities",
            "upstream.parent": parent ?? "null",
            "upstream.block_addresses": list(snapshot.upstream.addresses.blocked),
            "upstream.allow_addresses": list(snapshot.upstream.addresses.allowed),
            "timeouts.connect": Quantity.text(timeouts.connect),
            "timeouts.tls_handshake": Quantity.text(timeouts.tlsHandshake),
            "timeouts.idle_client": Quantity.text(timeouts.idleClient),
            "timeouts.idle_upstream": Quantity.text(timeouts.idleUpstream),
            "timeouts.first_byte": Quantity.text(timeouts.firstByte), "timeouts.drain": Quantity.text(timeouts.drain),
            "timeouts.drain_tunnels": Quantity.text(timeouts.drainTunnels),
            "timeouts.handover": Quantity.text(timeouts.handover),
            "limits.request_head": Quantity.text(bytes: limits.requestHead),
            "limits.response_head": Quantity.text(bytes: limits.responseHead), "limits.clients": "\(limits.clients)",
            "limits.bodies": Quantity.text(bytes: limits.bodies),
            "limits.inspected_body": Quantity.text(bytes: limits.inspectedBody),
            "limits.replay_body": Quantity.text(bytes: limits.replayBody),
            "limits.minimum_rate": Quantity.text(limits.minimumRate),
            "cache.memory": Quantity.text(bytes: snapshot.cache.memory),
            "cache.disk": Quantity.text(bytes: snapshot.cache.disk), "log.level": snapshot.log.level.rawValue,
            "log.format": snapshot.log.format.rawValue,
            "log.access": "\(snapshot.log.access)",
            "reachability": list(snapshot.reachability.map(\.text)), "pins": snapshot.pinFile ?? "null",
        ]
    }

    /// Keys with secret or private values.
    private static let hidden: Set<String> = [
        "request.headers", "request.set_headers", "request.parameters", "request.parts", "request.authorization",
        "session.credentials",
    ]

    fileprivate static func rules(_ layers: RuleLayers?) -> [String] {
        guard let layers else { return [] }
        let keys = layers.keys(.none).map { key in
            "\(key.name): \(hidden.contains(key.name) ? "•••" : key.value) (\(key.source), \(key.place))"
        }
        return keys
            + (layers.defaults.rules + layers.entry.rules).map { "\($0.layer.source): \($0.requests) (\($0.place))" }
    }
}

extension ConfigurationReport.Entry {
    fileprivate init(_ entry: HostEntry, _ history: PinHistory, at now: UnixTime) {
        let policy = entry.policy
        match = entry.pattern
        location = entry.location
        action = entry.action.rawValue
        pinning = policy.mode.rawValue
        pins = policy.pins.pins.map { Pin(pin: $0.description, written: $0.origin, notAfter: $0.notAfter) }
        enforcement = policy.enforcementBeforeExpiry(at: now).rawValue
        rollout = policy.rollout.map { $0.text(at: now, counted: history.entries[entry.pattern]) }
        position = policy.position.rawValue
        expires = policy.expiry?.date
        onExpiry = policy.expiry?.action.rawValue
        clientCertificate = entry.tls?.identity?.leaf.subject
        reportURI = entry.reportURI?.description
        record = entry.records
        onRefusal = entry.showsRefusals ? "page" : nil
        clients = entry.clients?.description
        rules = ConfigurationReport.rules(entry.rules)
        insecure = policy.unsafeSwitches.map(\.description)
    }
}

extension ReachabilityTarget {
    fileprivate var text: String {
        switch self {
        case .any: "any"
        case .address(let text), .host(let text): text
        }
    }
}
