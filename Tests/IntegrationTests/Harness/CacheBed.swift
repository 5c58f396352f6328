import Foundation
import Glibc
import PinproxyTestAuthority
import Testing

/// A proxy with a cache in front of `cache_origin.py`, as `origin.test` over TLS and `plain.test` without.
struct CacheBed {
    let bed: TestBed
    let proxy: ProxyProcess
    let origin: PythonPeer
    let plain: PythonPeer
    private let trust: String
    private let entry: [String]
    private let sections: ProxyProcess.Sections

    /// - Parameters:
    ///   - entry: lines of the entries of both hosts.
    ///   - cache: `cache` in pinproxy.yaml.
    init(
        _ bed: TestBed, entry: [String] = ["cache: memory"], workers: Int = 2, sections: ProxyProcess.Sections = [:],
        prepared: (String) throws -> Void = { _ in }
    ) async throws {
        let roots = try TestRoots()
        let chain = ServedChain(try roots.intermediate.issue(TestRoots.template(["origin.test"])))
        let certificate = try bed.file("origin.pem", chain.pem)
        let key = try bed.file("origin.key", chain.keyPEM)
        let origin = try await PythonPeer(in: bed, script: "cache_origin.py", [certificate, key])
        let plain = try await PythonPeer(in: bed, script: "cache_origin.py")
        try prepared(Self.directory(in: bed))
        try await self.init(
            bed, origin, plain, trust: roots.write(to: bed), entry: entry,
            sections: sections.merging(["proxy": ["workers: \(workers)"]]) { $0 + $1 })
    }

    private init(
        _ bed: TestBed, _ origin: PythonPeer, _ plain: PythonPeer, trust: String, entry: [String],
        sections: ProxyProcess.Sections
    ) async throws {
        self.bed = bed
        self.origin = origin
        self.plain = plain
        self.trust = trust
        self.entry = entry
        self.sections = sections
        proxy = try await ProxyProcess(
            in: bed, pins: Self.pins(entry), trust: trust,
            hosts: ["origin.test": "127.0.0.1", "plain.test": "127.0.0.1"], sections: sections)
    }

    /// Stops the proxy and starts another one with the same files.
    func restarted() async throws -> CacheBed {
        proxy.process.send(signal: SIGTERM)
        _ = try await proxy.process.ending()
        return try await CacheBed(bed, origin, plain, trust: trust, entry: entry, sections: sections)
    }

    /// Where the cache on disk is.
    var directory: String { Self.directory(in: bed) }

    private static func directory(in bed: TestBed) -> String { bed.path("proxy/state/pinproxy/cache") }

    private static func pins(_ entry: [String]) -> String {
        let entries = ["origin.test", "plain.test"].map { name in
            (["  - match: \(name)"] + entry.map { "    " + $0 }).joined(separator: "\n")
        }
        return "hosts:\n" + entries.joined(separator: "\n") + "\n"
    }

    func reload(_ entry: [String]) async throws {
        try bed.file("proxy/pins.yaml", Self.pins(entry))
        let outcome = try await proxy.reload()
        #expect(outcome.name == "config.reload", "\(outcome)")
    }

    /// A response of the origin over TLS, through the proxy: its head and body.
    func get(_ target: String, _ arguments: String...) async throws -> CachedResponse {
        try await CachedResponse(
            bed.curl(via: proxy, ["-i", "https://origin.test:\(origin.port)\(target)"] + arguments))
    }

    func getPlain(_ target: String, _ arguments: String...) async throws -> CachedResponse {
        try await CachedResponse(bed.curl(via: proxy, ["-i", "http://plain.test:\(plain.port)\(target)"] + arguments))
    }

    /// The requests for a path that the origin has received.
    func requests(_ path: String) -> [LogEvent] { origin.events.all("request").filter { $0["target"] == path } }

    /// The cache's action in the log, for each exchange of a path.
    func results(_ path: String, count: Int) async throws -> [String?] {
        try await eventually("\(count) lines for \(path)") { lines(path).count == count }
        return lines(path).map { $0["cache"] }
    }

    private func lines(_ path: String) -> [LogEvent] {
        proxy.events.all("exchange").filter { $0["path"]?.hasPrefix(path) == true }
    }
}

/// A response as curl shows it with `-i`.
struct CachedResponse: CustomStringConvertible {
    let status: Int
    let lines: [String]
    let body: String
    let description: String

    init(_ run: Run) throws {
        description = "\(run)"
        guard run.output.hasPrefix("HTTP/") else { throw TestBedError("no response: \(run)") }
        let end = run.output.range(of: "\r\n\r\n")
        lines = run.output[..<(end?.lowerBound ?? run.output.endIndex)].components(separatedBy: "\r\n")
        status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        body = end.map { String(run.output[$0.upperBound...]) } ?? ""
    }

    /// The values of a field, in order.
    func values(_ name: String) -> [String] {
        lines.filter { $0.lowercased().hasPrefix(name.lowercased() + ":") }
            .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }

    /// What pinproxy reports about the cache.
    var cacheStatus: String? { values("Cache-Status").last }
}
