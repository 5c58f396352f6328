import Foundation
import PinproxyTestAuthority
import Testing

/// nginx serves a bundle and an API; a machine uses both.
struct SignedPolicyBed {
    static let server = "policy.test"
    static let api = "api.test"

    let bed: TestBed
    let origin: NginxOrigin
    let roots: TestRoots
    let trust: String
    private let apiLeaf: HeldCertificate
    let keys: [String: String]

    /// - Parameter etag: false: nginx gives two files of one length and one second the same ETag.
    init(_ bed: TestBed, etag: Bool = false) async throws {
        self.bed = bed
        roots = try TestRoots()
        trust = try roots.write(to: bed)
        var sites: [NginxOrigin.Site] = []
        apiLeaf = try roots.leaf(Self.api)
        for (name, leaf) in [(Self.server, try roots.leaf(Self.server)), (Self.api, apiLeaf)] {
            sites.append(NginxOrigin.Site(name: name, chain: ServedChain(leaf)))
        }
        origin = try await NginxOrigin(in: bed, sites: sites, options: "etag \(etag ? "on" : "off");")
        var keys: [String: String] = [:]
        for name in ["root", "policy", "other"] {
            let made = try await bed.run([
                "openssl", "genpkey", "-algorithm", "ed25519", "-out", bed.path("\(name).pem"),
            ])
            #expect(made.succeeded, "\(made)")
            chmod(bed.path("\(name).pem"), 0o600)
            keys[name] = try await Self.bundle(bed, "key", bed.path("\(name).pem")).output
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
        self.keys = keys
        let policy = keys["policy"] ?? ""
        try await make(
            "root", file, "--root", keys["root"] ?? "", "--bundle", policy, "--timestamp", policy, "--expires",
            "365d")
        try await sign("root", "root")
    }

    var file: String { bed.path("made.bundle") }
    var served: String { "\(origin.documents)/policy.bundle" }

    private static func bundle(_ bed: TestBed, _ words: String...) async throws -> Run {
        try await bundle(bed, words)
    }

    private static func bundle(_ bed: TestBed, _ words: [String]) async throws -> Run {
        try await bed.run([ProxyProcess.executable, "bundle"] + words)
    }

    func make(_ words: String...) async throws {
        let run = try await Self.bundle(bed, words)
        #expect(run.succeeded, "\(words): \(run)")
    }

    func sign(_ role: String, _ key: String) async throws {
        try await make("sign", file, "--role", role, "--key-file", bed.path("\(key).pem"))
    }

    /// Signs a pin file.
    func sign(
        _ pins: String, _ more: String..., by key: String = "policy", expires: String = "90d", timestamp: String = "7d"
    ) async throws {
        let file = try bed.file("policy/pins.yaml", pins)
        let run = try await Self.bundle(
            bed, ["create", self.file, "--pins", file, "--expires", expires] + more)
        #expect(run.succeeded, "\(run)")
        try await sign("bundle", key)
        try await make("timestamp", self.file, "--expires", timestamp)
        try await sign("timestamp", key)
    }

    /// As a web server's file should be replaced.
    func serve() throws {
        let next = served + ".next"
        try Data(contentsOf: URL(fileURLWithPath: file)).write(to: URL(fileURLWithPath: next))
        chmod(next, 0o644)
        rename(next, served)
    }

    func lines(_ more: [String] = []) -> ProxyProcess.Sections {
        sections("https://\(Self.server):\(origin.port)/policy.bundle", more)
    }

    private func sections(_ url: String, _ more: [String]) -> ProxyProcess.Sections {
        ["policy": ["bundle: \(url)", "keys: [\"\(keys["root"] ?? "")\"]"] + more]
    }

    /// A proxy that fetches the bundle from a server that closes each connection after `length` bytes.
    func proxy(fetchingPieces length: Int) async throws -> (proxy: ProxyProcess, server: PythonPeer) {
        let chain = ServedChain(try roots.leaf(Self.server))
        let server = try await PythonPeer(
            in: bed, script: "download_origin.py",
            [
                "--certificate", try bed.file("policy-server.pem", chain.pem), "--key",
                try bed.file("policy-server.key", chain.keyPEM), "--file", file,
            ])
        let size = try Data(contentsOf: URL(fileURLWithPath: file)).count
        let url = "https://\(Self.server):\(server.port)/closes/\(length)/\(size)/policy.bundle"
        let proxy = try await ProxyProcess(
            in: bed, pins: "hosts: []\n", trust: trust, hosts: [Self.server: "127.0.0.1", Self.api: "127.0.0.1"],
            sections: sections(url, []))
        return (proxy, server)
    }

    func proxy(_ own: String = "hosts: []\n", _ more: String...) async throws -> ProxyProcess {
        try await ProxyProcess(
            in: bed, pins: own, trust: trust, hosts: [Self.server: "127.0.0.1", Self.api: "127.0.0.1"],
            sections: lines(more))
    }

    /// Makes the proxy fetch the bundle at once, by changing something about it.
    func look(_ proxy: ProxyProcess, _ own: String = "hosts: []\n", _ more: String...) async throws {
        try ProxyProcess.write(to: bed, folder: "proxy", pins: own, trust: trust, sections: lines(more))
        #expect(try await proxy.reload().name == "config.reload")
    }

    func apiPin() async throws -> String {
        try await apiLeaf.pin(bed).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func api(_ proxy: ProxyProcess) async throws -> Int {
        try await proxy.connect(to: "\(Self.api):\(origin.port)").status
    }

    func status(_ options: String...) async throws -> String {
        try await bed.run(
            [ProxyProcess.executable, "status", "--config", bed.path("proxy/pinproxy.yaml")] + options,
            environment: ProxyProcess.environment(in: bed)
        ).output
    }

    /// A number of `status --json`: of the policy, or of the proxy itself.
    func number(_ key: String, ofPolicy: Bool = false) async throws -> Int {
        let text = try await status("--json")
        let report = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        let part = ofPolicy ? report["policy"] as? [String: Any] : report
        return try #require(part?[key] as? Int, "\(text)")
    }
}
