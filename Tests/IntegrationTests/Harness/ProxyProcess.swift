import Foundation

@testable import pinproxy

/// The built proxy, running with its own configuration files and state directory.
final class ProxyProcess: Sendable {
    let process: ChildProcess
    /// Where it listens; the first of several.
    let address: String
    let port: UInt16
    let events: EventLog
    private let bed: TestBed
    private let folder: String

    /// The lines of `pinproxy.yaml` below each section's name, in addition to those that every test has.
    typealias Sections = [String: [String]]

    /// Starts the proxy and waits until it reports that it is ready.
    ///
    /// - Parameters:
    ///   - pins: the text of `pins.yaml`.
    ///   - trust: a PEM file of roots, or nil for the system's.
    ///   - hosts: names under `.test` and their addresses.
    ///   - launcher: a program with arguments that ends by executing the proxy.
    ///   - log: takes the log, which is read only until the proxy is ready.
    init(
        in bed: TestBed, folder: String = "proxy", pins: String = "hosts: []\n", trust: String?,
        hosts: [String: String] = [:], sections: Sections = [:], environment: [String: String] = [:],
        launcher: [String] = [], log: StalledPipe? = nil
    ) async throws {
        self.bed = bed
        self.folder = folder
        try Self.write(to: bed, folder: folder, pins: pins, trust: trust, sections: sections)
        try bed.file("\(folder)/hosts", hosts.map { "\($0.value) \($0.key)\n" }.joined())
        process = try await bed.start(
            launcher + (log == nil ? [] : StalledPipe.launcher) + Self.confinement
                + [Self.executable, "run", "--config", bed.path("\(folder)/pinproxy.yaml")],
            environment: Self.environment(in: bed, folder: folder).merging(environment) { $1 },
            inherited: log.map { [$0.writing] } ?? [], mergingErrors: true)
        log?.handOver()
        events = EventLog(lines: log?.lines ?? process.output)
        let ready: LogEvent
        do {
            ready =
                if let log { try await log.read(upTo: "proxy.ready") } else { try await events.first("proxy.ready") }
        } catch {
            // If it ended silently, its exit status says why.
            throw TestBedError(
                "\(error)\nprocess \(process.identifier): "
                    + ((try? await process.ending(within: .seconds(2))).map { "\($0)" } ?? "runs")
            )
        }
        let listen = ready["listen"] ?? ""
        let first = listen.split(separator: ",").first.map(String.init) ?? listen
        guard let colon = first.lastIndex(of: ":"), let port = UInt16(first[first.index(after: colon)...]) else {
            throw TestBedError("proxy.ready names no port: \(ready)")
        }
        address = String(first[..<colon])
        self.port = port
    }

    /// The executable that `swift build` made, next to the tests' own.
    static var executable: String {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return (tests as NSString).deletingLastPathComponent + "/pinproxy"
    }

    /// The launcher that confines every proxy, with `make test CONFINED=yes`.
    private static let confinement =
        ProcessInfo.processInfo.environment["PINPROXY_TEST_LAUNCHER"]
        .map { $0.split(separator: " ").map(String.init) } ?? []

    /// The environment of every `pinproxy` command that belongs to the proxy in `folder`.
    static func environment(in bed: TestBed, folder: String = "proxy") -> [String: String] {
        ["XDG_STATE_HOME": bed.path("\(folder)/state"), "CARES_HOSTS": bed.path("\(folder)/hosts")]
    }

    /// Writes the configuration; a running proxy reads it after `reload()`.
    static func write(
        to bed: TestBed, folder: String, pins: String, trust: String?, sections: Sections = [:]
    ) throws {
        var merged: Sections = ["proxy": [], "upstream": []]
        merged.merge(sections) { $1 }
        if merged["proxy"]?.contains(where: { $0.hasPrefix("listen:") }) != true {
            merged["proxy"]?.append("listen: 127.0.0.1:0")
        }
        if merged["proxy"]?.contains(where: { $0.hasPrefix("workers:") }) != true {
            merged["proxy"]?.append("workers: 2")
        }
        if let trust { merged["upstream"]?.append("trust: [\(trust)]") }
        let text = merged.sorted { $0.key < $1.key }.filter { !$0.value.isEmpty }
            .map { "\($0.key):\n" + $0.value.map { "  \($0)\n" }.joined() }.joined()
        try bed.file("\(folder)/pins.yaml", pins)
        try bed.file("\(folder)/pinproxy.yaml", text + "pins: pins.yaml\n")
        // A message that each user sees once, and tests don't need.
        try bed.file("\(folder)/state/pinproxy/\(SaidOnce.name)", CommandTrust.given + "\n", mode: 0o644)
    }

    /// `http://127.0.0.1:PORT`
    var url: String { "http://\(address):\(port)" }

    /// The certificate of the local authority, which clients must trust.
    var authority: String { bed.path("\(folder)/state/pinproxy/authority.pem") }

    /// Makes common programs use the proxy and trust its authority.
    var clientEnvironment: [String: String] {
        var variables: [String: String] = [:]
        for name in ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"] { variables[name] = url }
        for name in [
            "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
            "GIT_SSL_CAINFO", "PIP_CERT",
        ] {
            variables[name] = authority
        }
        return variables
    }

    /// How many descriptors it has open now.
    func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.identifier)/fd").count
    }

    /// The targets of its descriptors of one kind (`pipe`, `socket`).
    func descriptors(of kind: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.identifier)/fd").compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process.identifier)/fd/\($0)")
        }.filter { $0.hasPrefix(kind + ":") }
    }

    /// The number of its TCP sockets, listening ones included, or of those connected to this port of the peer.
    func openSockets(to peer: UInt16? = nil) throws -> Int {
        let own = Set(try descriptors(of: "socket").map { String($0.dropFirst(8).dropLast()) })
        return try Self.connectionTable().split(separator: "\n").dropFirst().count { line in
            let columns = line.split(separator: " ")
            let port = columns[2].split(separator: ":").last.flatMap { UInt16($0, radix: 16) }
            return own.contains(String(columns[9])) && (peer == nil || port == peer)
        }
    }

    /// The kernel's table of TCP sockets. The file has no size and is read in pieces: the first piece alone misses
    /// sockets once the machine has more than thirty.
    private static func connectionTable() throws -> String {
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/tcp"))
        defer { try? file.close() }
        var table = Data()
        while let piece = try file.read(upToCount: 1 << 16), !piece.isEmpty { table += piece }
        return String(decoding: table, as: UTF8.self)
    }

    /// Its peak of resident memory, in bytes. Only comparable with an earlier peak.
    func peakMemory() throws -> Int { try memory("VmHWM") }

    /// The anonymous memory that it has resident now, in bytes. That excludes its code: how much of it is resident
    /// varies with time.
    func ownMemory() throws -> Int { try memory("RssAnon") }

    private func memory(_ field: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.identifier)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix(field + ":") }
        guard let kibibytes = line?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw TestBedError("no \(field) of process \(process.identifier)")
        }
        return kibibytes * 1024
    }

    /// Makes it reload its files, and waits for the outcome.
    @discardableResult
    func reload() async throws -> LogEvent {
        let before = events.all.count { $0.isReloadOutcome }
        process.send(signal: SIGHUP)
        return try await events.reloadOutcome(after: before)
    }
}

extension LogEvent {
    var isReloadOutcome: Bool { name == "config.reload" || name == "config.error" }
}
