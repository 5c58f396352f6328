import Foundation
import PinproxyTestAuthority
import Testing

/// A reload that withdraws the permission of a connection, by its user, its client or its host, ends the
/// connection: at its next request, or at once if its bytes are forwarded unread.
@Suite(.timeLimit(.minutes(5)))
struct RevokedAccessTests {
    /// What a reload does to the users' file.
    enum UserChange: String, Sendable, CaseIterable, CustomTestStringConvertible {
        case removed = "the user is removed"
        case newPassword = "the user has another password"
        case usersAskedFor = "users are asked for"
        case another = "another user is removed"
        case nobodyAsked = "users are no longer asked for"

        var testDescription: String { rawValue }
        var ends: Bool { self == .removed || self == .newPassword || self == .usersAskedFor }
    }

    private func usersLine(_ name: String, _ password: String, in bed: TestBed) async throws -> String {
        "\(name):\(try await AuthenticationBed.bcrypt(password, in: bed))\n"
    }

    private struct UserBed {
        let shared: SharedBed
        let ada: String
        let bob: String
        let change: UserChange
    }

    private func prepare(_ bed: TestBed, _ change: UserChange, pins: String = "hosts: []\n") async throws -> UserBed {
        let ada = try await usersLine("ada", "secret", in: bed)
        let bob = try await usersLine("bob", "secret", in: bed)
        try bed.file("proxy/users", ada + bob)
        let shared = try await OriginBed.prepare(
            bed, pins: pins, sections: change == .usersAskedFor ? [:] : ["proxy": ["users: users"]])
        return UserBed(shared: shared, ada: ada, bob: bob, change: change)
    }

    private func apply(_ users: UserBed) async throws {
        let bed = users.shared.bed
        let configuration = try bed.contents("proxy/pinproxy.yaml")
        switch users.change {
        case .removed: try bed.file("proxy/users", users.bob)
        case .newPassword: try bed.file("proxy/users", users.bob + (try await usersLine("ada", "changed", in: bed)))
        case .another: try bed.file("proxy/users", users.ada)
        case .usersAskedFor:
            try bed.file(
                "proxy/pinproxy.yaml",
                configuration.replacingOccurrences(of: "proxy:\n", with: "proxy:\n  users: users\n"))
        case .nobodyAsked:
            try bed.file("proxy/pinproxy.yaml", configuration.replacingOccurrences(of: "  users: users\n", with: ""))
        }
        #expect(try await users.shared.proxy.reload().name == "config.reload")
    }

    @Test(arguments: UserChange.allCases)
    func anInterceptedConnectionIsItsUsers(change: UserChange) async throws {
        try await withTestBed { bed in
            let users = try await prepare(bed, change)
            let client = try await HeldClient(in: users.shared, user: "ada:secret")
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            #expect(try await client.get("/before") == "200")
            try await apply(users)
            #expect(try await client.get("/after") == (change.ends ? "closed" : "200"))
            let origin = try #require(users.shared.origin)
            guard change.ends else {
                _ = try await origin.events.first("request") { $0["target"] == "/after" }
                return
            }
            #expect(!origin.events.all("request").contains { $0["target"] == "/after" })
            let line = try await users.shared.proxy.events.first("exchange") { $0["path"] == "/after" }
            #expect(line["cause"]?.contains("user") == true, "\(line)")
        }
    }

    @Test(arguments: UserChange.allCases)
    func aTunnelIsItsUsers(change: UserChange) async throws {
        try await withTestBed { bed in
            let users = try await prepare(bed, change, pins: "defaults: {action: tunnel}\nhosts: []\n")
            let shared = users.shared
            let client = try await HeldClient(in: shared, trust: bed.path("roots.pem"), user: "ada:secret")
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            #expect(try await client.get("/before") == "200")
            try await apply(users)
            if change.ends {
                let line = try await shared.proxy.events.first("exchange") { $0["method"] == "CONNECT" }
                #expect(line["cause"]?.contains("user") == true, "\(line)")
            }
            #expect(try await client.get("/after") == (change.ends ? "closed" : "200"))
        }
    }

    // MARK: Hosts and clients

    /// Connections that carry bytes unread.
    enum Carried: String, Sendable, CaseIterable, CustomTestStringConvertible {
        case tunnel = "a tunnel"
        case verifiedTunnel = "a verified tunnel"
        case upgraded = "what an intercepted connection was upgraded to"
        case plainUpgraded = "what a plain connection was upgraded to"

        var testDescription: String { rawValue }

        func entry(_ pin: String) -> String {
            switch self {
            case .tunnel: "{match: origin.test, action: tunnel}"
            case .verifiedTunnel: "{match: origin.test, action: verify-tunnel, pinning: public-key, pins: [\(pin)]}"
            case .upgraded: "{match: origin.test, pinning: public-key, pins: [\(pin)]}"
            case .plainUpgraded: "{match: origin.test}"
            }
        }
    }

    /// What a reload does to the host's entry, or to the client.
    enum HostChange: String, Sendable, CaseIterable, CustomTestStringConvertible {
        case denied = "the host is denied"
        case clientNotAllowed = "the client is not allowed"
        case addressBlocked = "its address is blocked"
        case otherPin = "no pin of its chain is left"
        case otherAnchors = "its chain leads to no anchor any more"
        case newerTLS = "a newer TLS is asked for"
        case otherAction = "another action"
        case morePins = "a pin is added"
        case otherHost = "another host is denied"
        case nothing = "nothing changes"

        var testDescription: String { rawValue }
    }

    static let changes = Carried.allCases.flatMap { carried in
        HostChange.allCases.compactMap { change in
            let hasPins = carried == .verifiedTunnel || carried == .upgraded
            let isOfPolicy = [.otherPin, .otherAnchors, .newerTLS, .morePins].contains(change)
            return !hasPins && isOfPolicy ? nil : (carried, change)
        }
    }

    @Test(arguments: changes)
    func whatIsCarriedIsJudgedAnew(carried: Carried, change: HostChange) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf(OriginBed.name)
            let pin = try await leaf.pin(bed)
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let plain = try await PythonPeer.origin(in: bed, chain: nil)
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [\(carried.entry(pin))]\n", trust: roots.write(to: bed),
                hosts: [OriginBed.name: "127.0.0.1"])
            let shared = SharedBed(
                bed: bed, proxy: proxy, originPort: origin.port, secondOriginPort: plain.port, origin: origin,
                plainOrigin: plain)
            let connection = try await open(carried, shared)
            #expect(try await connection("before"))

            var entries = carried.entry(pin)
            switch change {
            case .denied: entries = "{match: origin.test, action: deny}"
            case .otherPin: entries = carried.entry(.wrongPin)
            case .morePins: entries = carried.entry("\(pin), \(String.wrongPin)")
            case .otherAction where carried == .plainUpgraded:
                entries = "{match: origin.test, pinning: public-key, pins: [\(pin)]}"
            case .otherAction where carried == .upgraded: entries = "{match: origin.test, action: tunnel}"
            case .otherAction: entries = "{match: origin.test}"
            case .otherAnchors: try bed.file("roots.pem", TestRoots("Other").root.pem)
            case .newerTLS: entries = entries.replacingOccurrences(of: "pins:", with: "min_tls: 1.3, pins:")
            case .otherHost: entries += ", {match: other.test, action: deny}"
            case .clientNotAllowed, .addressBlocked, .nothing: break
            }
            try bed.file("proxy/pins.yaml", "hosts: [\(entries)]\n")
            if change == .clientNotAllowed {
                let text = try bed.contents("proxy/pinproxy.yaml")
                try bed.file(
                    "proxy/pinproxy.yaml",
                    text.replacingOccurrences(of: "proxy:\n", with: "proxy:\n  allow_clients: [192.0.2.1]\n"))
            }
            if change == .addressBlocked {
                let text = try bed.contents("proxy/pinproxy.yaml")
                try bed.file(
                    "proxy/pinproxy.yaml",
                    text.replacingOccurrences(of: "upstream:\n", with: "upstream:\n  block_addresses: [loopback]\n"))
            }
            let ends = ![.nothing, .otherHost, .morePins].contains(change)
            #expect(try await proxy.reload().name == "config.reload")
            if ends {
                let line = try await proxy.events.first("exchange") { $0["cause"] != nil }
                #expect(line["cause"]?.hasPrefix("after a reload") == true, "\(line)")
            }
            #expect(try await connection("after") != ends)
        }
    }

    /// Opens the connection; says, each time, whether a word comes back.
    private func open(_ carried: Carried, _ shared: SharedBed) async throws -> (String) async throws -> Bool {
        switch carried {
        case .tunnel, .verifiedTunnel:
            let client = try await HeldClient(in: shared, trust: shared.bed.path("roots.pem"))
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            return { try await client.get("/\($0)") == "200" }
        case .upgraded:
            let client = try await HeldClient(in: shared)
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            #expect(try await client.upgrade() == "101")
            return { try await client.echo($0) == $0 }
        case .plainUpgraded:
            let connection = try RawConnection(to: shared.proxy)
            try await connection.send(
                "GET \(shared.plainURL)/upgrade HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n"
                    + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            #expect(try await connection.response().status == 101)
            return { word in
                do {
                    try await connection.send(word)
                    return try await connection.receive() == Array(word.utf8)
                } catch is TestBedError {
                    return false
                }
            }
        }
    }

    /// The reload comes between the answer to CONNECT and the tunnel's first byte.
    @Test func aTunnelThatWasOnlyPromisedIsNotOpened() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: "hosts: [{match: origin.test, action: verify-tunnel}]\n")
            let client = try await HeldClient(in: shared, trust: bed.path("roots.pem"))
            #expect(try await client.connect() == "200")
            let text = try bed.contents("proxy/pinproxy.yaml")
            try bed.file(
                "proxy/pinproxy.yaml",
                text.replacingOccurrences(of: "proxy:\n", with: "proxy:\n  allow_clients: [192.0.2.1]\n"))
            #expect(try await shared.proxy.reload().name == "config.reload")
            _ = try await client.secure()
            #expect(try await client.get("/after") != "200")
            #expect(shared.origin?.events.all("request").contains { $0["target"] == "/after" } == false)
        }
    }
}
