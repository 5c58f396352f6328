internal import PinproxyAddresses
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

/// pinproxy.yaml, read: what the daemon is, apart from the pins.
struct DaemonFile {
    var proxy: ProxySettings
    var authority: AuthoritySettings
    var upstream: UpstreamSettings
    var timeouts: Timeouts
    var limits: Limits
    var cache: CacheSizes
    var log: LogSettings
    var reachability: [ReachabilityTarget]
    var admin: AdminSettings
    /// The place where the pin file is named (else the whole file), and its path; nil for none.
    var pins: (place: Place, path: String)?
    var policy: PolicySettings?
    var telemetry: TelemetrySettings?

    /// Reads the file. What is wrong is among the findings, with its default in the result; nil if it isn't YAML.
    /// - Parameter unixTime: the instant when trust anchors must be valid.
    static func read(
        _ file: String, stateDirectory: String, at unixTime: UnixTime, readsPrivateFiles: Bool = true,
        readsAnchors: Bool = true,
        findings: Findings
    ) -> DaemonFile? {
        let bytes: [UInt8]
        switch FileContents.read(findings.sources.source(file)) {
        case .failure(let reason):
            findings.error(Place(file: file), "can't be read: \(reason.text)")
            return nil
        case .success(let read): bytes = read
        }
        findings.sources.note(bytes)
        let value = YAMLDocument.compose(bytes, file: file, findings: findings)
        if value == nil || value?.isNull == true {
            if findings.hasErrors { return nil }
            findings.warning(Place(file: file, line: 1, column: 1), "the file is empty; every setting has its default")
        }
        let root = Section("", value, file: file, findings: findings)
        let reader = DaemonFileReader(
            file: file, stateDirectory: stateDirectory, unixTime: unixTime, readsPrivateFiles: readsPrivateFiles,
            readsAnchors: readsAnchors)
        let proxy = reader.proxy(root.section("proxy"))
        let authority = reader.authority(root.section("authority"))
        let result = DaemonFile(
            proxy: proxy,
            authority: authority,
            upstream: reader.upstream(root.section("upstream"), authority: authority, listen: proxy.listen.addresses),
            timeouts: reader.timeouts(root.section("timeouts")),
            limits: reader.limits(root.section("limits")),
            cache: reader.cache(root.section("cache")),
            log: reader.log(root.section("log")),
            reachability: reader.reachability(root),
            admin: reader.admin(root, proxy: proxy.listen),
            pins: reader.pins(root), policy: reader.policy(root), telemetry: reader.telemetry(root))
        root.finish()
        return result
    }
}

/// The sections of pinproxy.yaml, one function each.
struct DaemonFileReader {
    let file: String
    let stateDirectory: String
    let unixTime: UnixTime
    /// False: what only the proxy's own user may read is left aside (`users`, the key of `tls`).
    let readsPrivateFiles: Bool
    /// False: no trust anchor is loaded, for commands that connect to no origin.
    let readsAnchors: Bool

    func authority(_ section: Section) -> AuthoritySettings {
        func path(_ key: String, _ name: String) -> String {
            let path = section.read(key, .path) ?? name
            return FileContents.resolve(path, relativeTo: stateDirectory + "/")
        }
        defer { section.finish() }
        return AuthoritySettings(
            certificatePath: path("certificate", "authority.pem"),
            privateKeyPath: path("private_key", "authority.key"),
            signer: signer(section),
            // With the backdate of a day a leaf stays within 90 days.
            leafLifetime: section.read("leaf_lifetime", .duration(.hours(1)...(.days(89)))) ?? .days(30),
            permitted: permittedNames(section))
    }

    private func signer(_ section: Section) -> String? {
        guard let value = section.nonNull("signer") else { return nil }
        return section.scalar(
            value, "signer",
            Form { text in
                guard case .success(.unix(let path)) = ListenPlace.parse(text, relativeTo: file) else {
                    return .failure(
                        Reason("\"\(text)\" is not a Unix socket; write e.g. unix:/run/pinproxy-signer.sock"))
                }
                return .success(path)
            })
    }

    private func permittedNames(_ section: Section) -> PermittedNames? {
        guard let value = section.value("name_constraints"), !value.isNull, let names = section.list("name_constraints")
        else {
            return nil
        }
        if names.isEmpty { section.error(value, "name_constraints: the list is empty; null permits every host") }
        return PermittedNames(names.compactMap { section.scalar($0, "name_constraints", .permittedName) })
    }

    func timeouts(_ section: Section) -> Timeouts {
        var timeouts = Timeouts()
        func read(_ key: String, _ range: ClosedRange<Duration>, _ field: WritableKeyPath<Timeouts, Duration>) {
            if let value = section.read(key, .duration(range)) { timeouts[keyPath: field] = value }
        }
        read("connect", .milliseconds(1)...(.hours(1)), \.connect)
        read("tls_handshake", .milliseconds(1)...(.hours(1)), \.tlsHandshake)
        read("idle_client", .milliseconds(1)...(.days(1)), \.idleClient)
        read("idle_upstream", .milliseconds(1)...(.days(1)), \.idleUpstream)
        read("first_byte", .milliseconds(1)...(.days(1)), \.firstByte)
        read("drain", .zero...(.days(1)), \.drain)
        read("drain_tunnels", .zero...(.days(1)), \.drainTunnels)
        read("handover", .zero...(.days(1)), \.handover)
        section.finish()
        return timeouts
    }

    func limits(_ section: Section) -> Limits {
        var limits = Limits()
        let heads = 1 << 10...16 << 20
        limits.requestHead = section.read("request_head", .size(heads)) ?? limits.requestHead
        limits.responseHead = section.read("response_head", .size(heads)) ?? limits.responseHead
        limits.clients = section.read("clients", .integer(1...1_000_000)) ?? limits.clients
        let bodies = 0...1 << 30
        limits.inspectedBody = section.read("inspected_body", .size(bodies)) ?? limits.inspectedBody
        limits.replayBody = section.read("replay_body", .size(bodies)) ?? limits.replayBody
        if let rate = section.read("minimum_rate", .minimumRate) { limits.minimumRate = rate }
        limits.bodies = section.read("bodies", .size(64 << 10...1 << 40)) ?? limits.bodies
        if limits.bodies < limits.inspectedBody,
            let place = section.value("bodies") ?? section.value("inspected_body")
        {
            section.warning(
                place,
                "bodies (\(Quantity.text(bytes: limits.bodies))) is less than inspected_body "
                    + "(\(Quantity.text(bytes: limits.inspectedBody))): a body of that length is always refused")
        }
        section.finish()
        return limits
    }

    func cache(_ section: Section) -> CacheSizes {
        var sizes = CacheSizes()
        sizes.memory = section.read("memory", .size(1 << 20...1 << 40)) ?? sizes.memory
        sizes.disk = section.read("disk", .size(1 << 20...1 << 50)) ?? sizes.disk
        section.finish()
        return sizes
    }

    func reachability(_ root: Section) -> [ReachabilityTarget] {
        let usual = [ReachabilityTarget.any]
        guard let value = root.nonNull("reachability"), let list = root.elements(value, "reachability") else {
            return usual
        }
        if list.isEmpty {
            root.error(value, "reachability: the list is empty; write any, addresses or host names")
            return usual
        }
        let read = list.map { root.scalar($0, "reachability", Form(read: ReachabilityTarget.parse)) }
        guard !read.contains(nil) else { return usual }
        return read.compactMap(\.self)
    }

    func log(_ section: Section) -> LogSettings {
        var log = LogSettings()
        log.level = section.read("level", .anyCase) ?? log.level
        log.format = section.read("format", .anyCase) ?? log.format
        log.access = section.read("access", .bool) ?? log.access
        section.finish()
        return log
    }

    func pins(_ root: Section) -> (place: Place, path: String)? {
        guard let value = root.value("pins") else {
            return (Place(file: file), FileContents.resolve("pins.yaml", relativeTo: file))
        }
        guard !value.isNull, let path = root.scalar(value, "pins", .path) else { return nil }
        return (root.place(of: value), FileContents.resolve(path, relativeTo: file))
    }
}

extension Form where Value == PermittedNames.Item {
    /// A domain, an address or a network.
    fileprivate static var permittedName: Form {
        Form { text in
            guard text.contains(where: { ":/".contains($0) }) || IPAddress(text) != nil else {
                return PermittedNames.domain(text).mapError { Reason("\($0)") }
            }
            return AddressRange.parse(text).flatMap { range in
                IPAddress(bytes: range.bytes).map { .success(.network($0, prefixLength: range.prefixLength)) }
                    ?? .failure(Reason("\"\(text)\" is not a network"))
            }
        }
    }
}

extension Form where Value == String {
    static var path: Form {
        Form { text in
            if text.isEmpty { return .failure(Reason("the path is empty")) }
            if text.contains("://") { return .failure(Reason("\"\(text)\" is a URL, not a path")) }
            if text.hasPrefix(ServiceCredential.prefix) {
                let name = text.dropFirst(ServiceCredential.prefix.utf8.count)
                guard ServiceCredential.isName(name) else {
                    return .failure(
                        Reason("\"\(name)\" is not a credential's name: letters, digits and the like, no / or :"))
                }
            }
            if text.hasPrefix("~") { return .failure(Reason("\"~\" is not expanded; write the whole path")) }
            return .success(text)
        }
    }
}

extension Duration {
    static func hours(_ count: Int64) -> Duration { .seconds(count * 3600) }
    static func days(_ count: Int64) -> Duration { .hours(count * 24) }
}
