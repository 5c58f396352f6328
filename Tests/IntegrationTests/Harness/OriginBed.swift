import PinproxyTestAuthority

/// The bed of most suites: the Python origin as `origin.test` over TLS, and a plain one.
enum OriginBed {
    static let name = "origin.test"

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await prepare(bed, pins: "hosts: []\n")
    }

    static func prepare(
        _ bed: TestBed, pins: String = "hosts: []\n", sections: ProxyProcess.Sections = [:],
        hosts: [String: String] = [:], files: [String: String] = [:], roots: TestRoots? = nil,
        log: StalledPipe? = nil, launcher: [String] = []
    ) async throws -> SharedBed {
        for (name, text) in files { try bed.file(name, text) }
        let roots = try roots ?? TestRoots()
        let names = [name] + hosts.keys.sorted()
        let leaf = try roots.intermediate.issue(TestRoots.template(names))
        let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
        let plain = try await PythonPeer.origin(in: bed, chain: nil)
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed), hosts: hosts.merging([name: "127.0.0.1"]) { $1 },
            sections: sections, launcher: launcher, log: log)
        return SharedBed(
            bed: bed, proxy: proxy, originPort: origin.port, secondOriginPort: plain.port, origin: origin,
            plainOrigin: plain)
    }
}

extension SharedBed {
    var url: String { "https://\(OriginBed.name):\(originPort)" }
    var plainURL: String { "http://\(OriginBed.name):\(secondOriginPort)" }
    var authority: String { "\(OriginBed.name):\(originPort)" }

    func curl(_ arguments: String...) async throws -> Run {
        try await bed.curl(via: proxy, arguments)
    }
}
