import Foundation
import PinnedSession
import PinproxySecurity
import PinproxyTestAuthority
import Synchronization
import Testing

/// What the tests of the library share: an origin for the names below `localhost`, which need no hosts file, and
/// sessions that trust its root.
struct LibraryBed: Sendable {
    static let names = ["api.localhost", "other.localhost"]

    let bed: TestBed
    let roots: TestRoots
    let leaf: HeldCertificate
    let origin: PythonPeer
    let trust: String

    init(in bed: TestBed) async throws {
        self.bed = bed
        roots = try TestRoots()
        leaf = try roots.intermediate.issue(TestRoots.template(Self.names))
        trust = try roots.write(to: bed)
        origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
    }

    /// Another peer with the same certificate.
    func peer(_ script: String) async throws -> PythonPeer {
        let certificate = try bed.file("\(script).pem", leaf.chainPEM)
        let key = try bed.file("\(script).key", leaf.keyPEM)
        return try await PythonPeer(in: bed, script: script, ["--certificate", certificate, "--key", key])
    }

    var url: String { "https://api.localhost:\(origin.port)" }
    var otherURL: String { "https://other.localhost:\(origin.port)" }

    /// A session that trusts the root.
    func session(
        hosts: [HostRule] = [], hooks: SessionHooks = SessionHooks(),
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.trust = .files([trust])
        configuration.hosts = hosts
        change(&configuration)
        return try SessionManager(configuration: configuration, hooks: hooks)
    }

    /// The requests that the origin got before this one, by their targets.
    func targets() async throws -> [String] {
        // It logs requests in order.
        let fence = "/fence/\(UInt64.random(in: 0 ... .max))"
        _ = try await session().data(for: HTTPRequest(url + fence))
        _ = try await origin.events.first("request") { $0["target"] == fence }
        return origin.events.all("request").compactMap { $0["target"] }.filter { !$0.hasPrefix("/fence") }
    }

    /// A URL that redirects there.
    func redirect(to location: String, status: Int = 302, at base: String? = nil) -> String {
        let answer = "HTTP/1.1 \(status) Moved\r\nLocation: \(location)\r\nContent-Length: 5\r\n\r\nmoved"
        return (base ?? url) + "/answer/redirect/" + encoded(answer)
    }

    /// What is in a directory.
    func files(in directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }
}

/// Gives `body` a bed and clears it away, whatever happens.
func withLibraryBed(_ body: (LibraryBed) async throws -> Void) async throws {
    try await withTestBed { bed in try await body(LibraryBed(in: bed)) }
}

/// Collects from whatever thread.
final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    func add(_ element: Element) { elements.withLock { $0.append(element) } }
    var all: [Element] { elements.withLock { $0 } }
}

/// What a call throws; nil: nothing.
func failure(isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void) async -> SessionError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? SessionError
    }
}

/// Byte i is i % 251: as `breaking_origin.py` serves it.
func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 % 251) } }

/// The object in JSON that the origin's `/echo` answers with.
struct Echo: Decodable {
    let method: String
    let target: String
    let lines: [String]
    let length: Int
    let sha256: String

    init(_ body: [UInt8]) throws { self = try JSONDecoder().decode(Echo.self, from: Data(body)) }

    func field(_ name: String) -> String? {
        lines.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }.map { line in
            String(line.dropFirst(name.count + 1).drop { $0 == " " })
        }
    }
}

/// As the origin's `/answer` and `/raw` take bytes.
func encoded(_ text: String) -> String { RuleBed.encoded(Array(text.utf8)) }

/// Records that something else happened.
func note(_ text: String) { Issue.record(Comment(rawValue: text)) }
