import Foundation
import PinproxyTestAuthority
import Testing

/// How an origin lets its TLS sessions be resumed.
enum KeptSession: String, Sendable, CaseIterable, CustomTestStringConvertible {
    case sessionID = "a session id of TLS 1.2"
    case oldTicket = "a ticket of TLS 1.2"
    case ticket = "a ticket of TLS 1.3"

    var testDescription: String { rawValue }

    var originOptions: [String] {
        switch self {
        case .sessionID: ["--tls12", "--session-ids"]
        case .oldTicket: ["--tls12"]
        case .ticket: []
        }
    }
}

/// A change of the configuration after which the origin is no longer what the policy asks for.
enum PolicyChange: String, Sendable, CaseIterable, CustomTestStringConvertible {
    case pinRemoved = "the pin that matched is removed"
    case pinsReplaced = "its pins become another kind"
    case anchorsReplaced = "its root is no longer trusted"
    case newerTLS = "TLS 1.3 is asked for"

    var testDescription: String { rawValue }
}

/// An origin under a policy that changes, and changes back.
struct PolicyBed {
    let shared: SharedBed
    let roots: TestRoots
    let pin: String

    init(_ bed: TestBed, session: KeptSession = .ticket) async throws {
        roots = try TestRoots()
        let leaf = try roots.leaf(OriginBed.name)
        pin = try await leaf.pin(bed)
        let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf), session.originOptions)
        let proxy = try await ProxyProcess(
            in: bed, pins: Self.pins([pin, .wrongPin]), trust: roots.write(to: bed),
            hosts: [OriginBed.name: "127.0.0.1"])
        shared = SharedBed(bed: bed, proxy: proxy, originPort: origin.port, origin: origin)
    }

    private static func pins(_ pins: [String], more: String = "") -> String {
        """
        hosts:
          - match: \(OriginBed.name)
            pinning: public-key
            pins: [\(pins.joined(separator: ", "))]
            \(more)

        """
    }

    /// Applies the change; nil restores the original text.
    func apply(_ change: PolicyChange?) async throws {
        var text = Self.pins([pin, .wrongPin])
        switch change {
        case .pinRemoved: text = Self.pins([.wrongPin])
        case .pinsReplaced:
            text = Self.pins(["{file: \(try shared.bed.file("other.pem", roots.root.pem))}"], more: "position: leaf")
        case .anchorsReplaced, nil: break
        case .newerTLS: text = Self.pins([pin, .wrongPin], more: "min_tls: 1.3")
        }
        let root = change == .anchorsReplaced ? try TestRoots("Other").root : roots.root
        try shared.bed.file("roots.pem", root.pem, mode: 0o644)
        try shared.bed.file("proxy/pins.yaml", text)
        let outcome = try await shared.proxy.reload()
        #expect(outcome.name == "config.reload", "\(outcome)")
    }

    /// Makes a request on a new connection, since the origin closes each one.
    /// - Returns: whether TLS was resumed.
    func request() async throws -> Bool {
        let before = connections.count
        let run = try await shared.curl(shared.url + "/until-close/10")
        #expect(run.succeeded, "\(run)")
        try await eventually("the origin to say that it was connected to") { connections.count > before }
        #expect(connections.count == before + 1)
        return connections.last?["resumed"] == "1"
    }

    /// The handshakes that the origin has completed.
    var connections: [LogEvent] { shared.origin?.events.all("connection") ?? [] }

    func requests(for target: String) -> Int {
        shared.origin?.events.all("request").count { $0["target"] == target } ?? 0
    }
}

/// A reload applies to everything kept from before it. Idle connections, TLS sessions, answered CONNECTs and client
/// connections carry no exchange that the new policy would refuse.
@Suite(.timeLimit(.minutes(5)))
struct ChangedPolicyTests {
    static let changes: [(KeptSession, PolicyChange)] = KeptSession.allCases.flatMap { session in
        PolicyChange.allCases.compactMap { change in
            session == .ticket && change == .newerTLS ? nil : (session, change)
        }
    }

    @Test(arguments: changes)
    func nothingKeptOfAnOriginOutlivesItsPolicy(session: KeptSession, change: PolicyChange) async throws {
        try await withTestBed { bed in
            let policy = try await PolicyBed(bed, session: session)
            let shared = policy.shared
            #expect(try await !policy.request())
            #expect(try await policy.request())
            // An idle connection, too.
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            let before = policy.connections.count

            try await policy.apply(change)
            #expect(try await shared.proxy.connect(to: shared.authority).status == 502)
            // The idle connection was closed, not just skipped.
            _ = try await #require(shared.origin).events.first("closed") { $0["connection"] == "\(before)" }
            #expect(!policy.connections.dropFirst(before).contains { $0["resumed"] == "1" })

            // Back to the original text. Its sessions were dropped too, so the first handshake is a full one.
            try await policy.apply(nil)
            #expect(try await !policy.request())
            #expect(try await policy.request())
        }
    }

    /// A stricter policy resumes no session of the previous one, even if the origin satisfies it.
    @Test(arguments: KeptSession.allCases)
    func aSessionIsOnlyTheGenerationsThatVerifiedIt(session: KeptSession) async throws {
        try await withTestBed { bed in
            let policy = try await PolicyBed(bed, session: session)
            #expect(try await !policy.request())
            #expect(try await policy.request())
            let entry = "{match: origin.test, pinning: public-key, pins: [\(policy.pin)]}"
            try bed.file("proxy/pins.yaml", "hosts: [\(entry)]\n")
            try await policy.shared.proxy.reload()
            #expect(try await !policy.request())
            #expect(try await policy.request())
            // Changes to other entries don't matter.
            try bed.file("proxy/pins.yaml", "hosts: [\(entry), {match: x.test, action: deny}]\n")
            try await policy.shared.proxy.reload()
            #expect(try await policy.request())
        }
    }

    /// How far a client is when the policy changes.
    enum Stage: String, Sendable, CaseIterable, CustomTestStringConvertible {
        case connected = "its CONNECT is answered"
        case secured = "TLS is up"
        case resumed = "TLS is up, resumed"
        case used = "it has made a request"

        var testDescription: String { rawValue }
    }

    @Test(arguments: Stage.allCases, [PolicyChange.pinRemoved, .anchorsReplaced])
    func theNextExchangeOfAHeldClientIsRefused(stage: Stage, change: PolicyChange) async throws {
        try await withTestBed { bed in
            let policy = try await PolicyBed(bed)
            let client = try await HeldClient(in: policy.shared)
            if stage == .resumed {
                #expect(try await client.connect() == "200")
                #expect(try await client.secure() == "new")
                #expect(try await client.get() == "200")
            }
            #expect(try await client.connect() == "200")
            if stage != .connected {
                #expect(try await client.secure() == (stage == .resumed ? "resumed" : "new"))
            }
            if stage == .used { #expect(try await client.get() == "200") }

            try await policy.apply(change)
            if stage == .connected { #expect(try await client.secure() == "new") }
            #expect(try await client.get("/refused") == "502")
            // A refusal is the last word on its connection, and the next one gets no further.
            #expect(try await client.connect() == "502")
            #expect(policy.requests(for: "/refused") == 0)
        }
    }

    /// The session that a client resumes with the proxy carries nothing of the origin's.
    @Test func aClientsSessionOpensNoOriginThatIsRefused() async throws {
        try await withTestBed { bed in
            let policy = try await PolicyBed(bed)
            let client = try await HeldClient(in: policy.shared)
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            #expect(try await client.get() == "200")
            try await policy.apply(.pinRemoved)
            #expect(try await client.connect() == "502")
            try await policy.apply(nil)
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "resumed")
            #expect(try await client.get() == "200")
        }
    }

    /// A program that leaves TLS to the proxy has one connection for all hosts.
    @Test func anHTTPSRequestOnAKeptPlainConnectionIsRefused() async throws {
        try await withTestBed { bed in
            let policy = try await PolicyBed(bed)
            let shared = policy.shared
            let connection = try RawConnection(to: shared.proxy)
            for status in [200, 200, 502] {
                if status == 502 { try await policy.apply(.pinRemoved) }
                try await connection.send("GET \(shared.url)/\(status) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n")
                #expect(try await connection.response().status == status)
            }
            #expect(policy.requests(for: "/200") == 2 && policy.requests(for: "/502") == 0)
        }
    }
}
