import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxySession
import Testing

@testable import PinproxyConfiguration

/// How `defaults`, an entry and their rules are combined.
@Suite struct RuleLayersTests {
    private func layers(_ pins: String) throws -> RuleLayers {
        let snapshot = try RuleBed(pins).load()
        return try #require(snapshot.entry(for: "a.test", port: 443)?.rules)
    }

    private func keys(_ layers: RuleLayers, _ method: String, _ path: String) throws -> [String] {
        guard case .decided(let choice) = layers.choose(path: path, method: method) else {
            return ["ambiguous"]
        }
        return layers.keys(choice).map { "\($0.name): \($0.value) (\($0.source), \($0.place.line ?? 0))" }
    }

    @Test func knowsWhetherAnyRequestMayUseWWAN() throws {
        for (pins, allows) in [
            ("hosts: [{match: a.test, session: {timeout: 5s}}]\n", true),
            ("hosts: [{match: a.test, session: {allow_wwan: false}}]\n", false),
            ("hosts: [{match: a.test, rules: [{path: /a, session: {allow_wwan: false}}]}]\n", true),
            (
                """
                hosts: [{match: a.test, session: {allow_wwan: false}, rules: [{path: /a, session: {allow_wwan: \
                true}}]}]\n
                """,
                true
            ),
            ("defaults: {session: {allow_wwan: false}}\nhosts: [{match: a.test, session: {allow_wwan: true}}]\n", true),
        ] {
            let layers = try layers(pins)
            #expect(layers.mayAllowWWAN == allows, "\(pins)")
        }
    }

    @Test func theMoreSpecificIsLaidOverTheMoreGeneral() throws {
        let layers = try layers(
            """
            defaults:
              session: {timeout: 5s, redirects: follow}
              request: {headers: {X-A: defaults, X-B: defaults}}
              rules:
                - {path: /**/upload, session: {timeout: 10m, order: lifo}}
            hosts:
              - match: a.test
                request: {headers: {X-C: entry}}
                session:
                  redirects: refuse
                rules:
                  - {path: /v1/upload, session: {order: fifo}}
                  - {path: /v1/**, methods: [POST], session: {timeout: 1s}}
                  - {path: /v1/**, response: {max_body: 1MiB}}
            """)
        let entry = [
            "session.timeout: 5s (defaults, 2)", "session.redirects: refuse (entry, 10)",
            "request.headers: {X-C: entry} (entry, 8)",
        ]
        #expect(try keys(layers, "GET", "/") == entry)
        #expect(
            try keys(layers, "GET", "/x/upload") == [
                "session.timeout: 10m (rule 1 of the defaults, 5)", "session.redirects: refuse (entry, 10)",
                "session.order: lifo (rule 1 of the defaults, 5)", "request.headers: {X-C: entry} (entry, 8)",
            ])
        #expect(
            try keys(layers, "POST", "/v1/upload") == [
                "session.timeout: 10m (rule 1 of the defaults, 5)", "session.redirects: refuse (entry, 10)",
                "session.order: fifo (rule 1 of the entry, 12)", "request.headers: {X-C: entry} (entry, 8)",
            ])
        #expect(try keys(layers, "POST", "/v1/x?y=/v1/upload")[0] == "session.timeout: 1s (rule 2 of the entry, 13)")
        #expect(try keys(layers, "GET", "/v1/x") == entry + ["response.max_body: 1MiB (rule 3 of the entry, 14)"])
        #expect(try keys(layers, "OPTIONS", "*") == entry)
    }

    @Test func anEntryTakesBackWhatTheDefaultsSay() throws {
        let layers = try layers(
            """
            defaults: {session: {timeout: 5s, max_active: 3}, request: {remove_headers: [Referer]}, response: {status: \
            200}}
            hosts: [{match: a.test, session: {timeout: 60s, max_active: null}, request: {remove_headers: []}, \
            response: {status: null}}]
            """)
        let rules = layers.rules(.none)
        #expect(rules.session == SessionRules())
        #expect(rules.request.removeHeaders == [])
        #expect(rules.response.status == nil)
        #expect(layers.keys(.none).allSatisfy { $0.source == RuleSource(.entry) })
    }

    @Test func hostsWithoutAnEntryHaveTheDefaults() throws {
        let snapshot = try RuleBed("defaults: {rules: [{methods: [PUT], session: {timeout: 5s}}]}\nhosts: []\n").load()
        let layers = try #require(snapshot.defaultRules)
        #expect(try keys(layers, "PUT", "/") == ["session.timeout: 5s (rule 1 of the defaults, 1)"])
        #expect(try keys(layers, "GET", "/") == [])
    }

    @Test func secretsAreMasked() throws {
        let layers = try layers(
            """
            hosts: [{match: a.test, session: {credentials: {user: ann, password_file: secret}}, request: {headers: \
            {X-Key: {file: secret}}}}]\n
            """
        )
        #expect(layers.keys(.none).map(\.value) == ["{user: ann, password: •••}", "{X-Key: •••}"])
    }

    /// A contradiction only appears when layers are combined: the serializer may come from another layer.
    @Test func contradictionsAreOfWhatIsLaid() throws {
        #expect(
            try RuleBed(
                """
                defaults: {request: {serializer: multipart}}\nhosts: [{match: a.test, request: {parts: [{name: a, \
                value: b}]}}]\n
                """
            )
            .problems() == [])
        #expect(
            try RuleBed(
                """
                defaults: {response: {serializer: json, remove_null_values: true}}\nhosts: [{match: a.test, rules: \
                [{path: /a, response: {serializer: xml}}]}]\n
                """
            ).problems() == [
                "1:61: error: remove_null_values: null values are removed from JSON, and here serializer is xml"
            ])
    }

    // MARK: Paths

    /// The rule is for /private; a path that a server reads as that can't pass as another.
    @Test(
        arguments: [
            ("/private/x", true), ("/%70rivate/x", true), ("/private", true), ("/private/", true),
            ("/private/%2e", true),
            ("/private//x", true), ("/private/./x", true), ("/private/x;a=b", true), ("/private/a%2fb", true),
            ("/private/a\\b", true),
            ("//private/x", nil), ("/./private/x", nil), ("/public/../private/x", nil),
            ("/public/%2e%2E/private/x", nil),
            ("/private%2fx", nil), ("/private%5cx", nil), ("/private\\x", nil), ("/public\\..\\private\\x", nil),
            ("/private;a=b/x", nil),
            ("/public/..;/private/x", nil), ("/;a/private", nil), ("/private/../public", nil),
            ("/private/..%2fpublic", nil),
            ("/public", false), ("/privately", false), ("/public/private", false), ("/public//x", false),
            ("/public/%2e%2e/x", false),
            ("/public;private", false), ("/?/private", false), ("/%2570rivate", false),
        ] as [(String, Bool?)])
    func noSpellingGetsRoundARule(_ path: String, _ expected: Bool?) throws {
        let layers = try layers("hosts: [{match: a.test, rules: [{path: /private/**, session: {timeout: 1s}}]}]\n")
        switch (layers.choose(path: path, method: "GET"), expected) {
        case (.ambiguous(let one, let other), nil): #expect(one != other)
        case (.decided(let choice), let expected?): #expect(choice.ofEntry == (expected ? 0 : nil))
        case (let outcome, _): Issue.record("\(path): \(outcome)")
        }
    }

    @Test func withoutRulesForPathsNoneIsAmbiguous() throws {
        let layers = try layers("hosts: [{match: a.test, session: {timeout: 1s}}]\n")
        #expect(layers.choose(path: "/a//../%2f;\\", method: "GET") == .decided(.none))
    }

    // MARK: Compared with a naive model

    private struct Model {
        struct Rule {
            var path: String?
            var methods: [String]
            var keys: [String: String]
        }
        var own: [String: String]
        var rules: [Rule]

        static let patterns: [String: Set<String>] = [
            "/a": ["/a"], "/a/**": ["/a", "/a/b", "/a/b/c"], "/**": ["/", "/a", "/a/b", "/a/b/c", "/c"],
            "/*": ["/", "/a", "/c"],
            "/**/b/*": ["/a/b/c"],
        ]
        static let keys: [String: [String]] = [
            "session.timeout": ["1s", "2s", "1m"], "session.redirects": ["pass", "follow", "refuse"],
            "session.max_active": ["1", "null"],
            "request.cookies": ["pass", "strip"], "request.remove_headers": ["[]", "[A]", "[B, C]"],
            "response.status": ["null", "[200]"], "response.max_body": ["1B", "null"],
        ]

        init(_ random: inout Seeded) {
            own = Self.keys(&random)
            rules = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                let path = Bool.random(using: &random) ? Self.patterns.keys.sorted().randomElement(using: &random) : nil
                let methods = ["GET", "PUT"].filter { _ in Bool.random(using: &random) }
                return Rule(
                    path: path, methods: path == nil && methods.isEmpty ? ["GET"] : methods, keys: Self.keys(&random))
            }
        }

        private static func keys(_ random: inout Seeded) -> [String: String] {
            var some: [String: String] = [:]
            for key in keys.keys.sorted() where Int.random(in: 0..<3, using: &random) == 0 {
                some[key] = keys[key]?.randomElement(using: &random)
            }
            return some
        }

        var text: String {
            func tables(_ keys: [String: String]) -> String {
                ["session", "request", "response"].map { table in
                    let own = keys.keys.sorted().filter { $0.hasPrefix(table) }
                    return
                        "\(table): {"
                        + own.map { "\($0.split(separator: ".")[1]): \(keys[$0] ?? "")" }.joined(separator: ", ")
                        + "}"
                }.joined(separator: ", ")
            }
            let list = rules.map { rule in
                let path = rule.path.map { "path: '\($0)', " } ?? ""
                let methods = rule.methods.isEmpty ? "" : "methods: [\(rule.methods.joined(separator: ", "))], "
                return "{\(path)\(methods)\(tables(rule.keys))}"
            }
            return "\(tables(own)), rules: [\(list.joined(separator: ", "))]"
        }

        /// Its own keys, overridden by those of its first matching rule.
        func laid(over below: [String: String], _ path: String, _ method: String) -> [String: String] {
            let rule = rules.first {
                ($0.path.flatMap { Self.patterns[$0] }?.contains(path) ?? true)
                    && ($0.methods.isEmpty || $0.methods.contains(method))
            }
            return below.merging(own) { $1 }.merging(rule?.keys ?? [:]) { $1 }
        }
    }

    /// The entries are in one pin file, so that it is read once.
    @Test func agreesWithTheNaiveModel() throws {
        var random = Seeded(state: 3)
        for _ in 0..<5 {
            let defaults = Model(&random)
            let entries = (0..<60).map { _ in Model(&random) }
            let hosts = entries.enumerated().map { "  - {match: h\($0).test, \($1.text)}\n" }.joined()
            let snapshot = try RuleBed("defaults: {\(defaults.text)}\nhosts:\n\(hosts)").load()
            for (number, entry) in entries.enumerated() {
                for path in ["/", "/a", "/a/b", "/a/b/c", "/c"] {
                    for method in ["GET", "PUT", "POST"] {
                        let expected = entry.laid(over: defaults.laid(over: [:], path, method), path, method)
                        let layers = try #require(snapshot.entry(for: "h\(number).test", port: 443)?.rules)
                        guard case .decided(let choice) = layers.choose(path: path, method: method) else {
                            Issue.record("\(path) is ambiguous")
                            return
                        }
                        let keys = Dictionary(uniqueKeysWithValues: layers.keys(choice).map { ($0.name, $0.value) })
                        #expect(keys == expected)
                        // What is displayed is what applies.
                        let rules = layers.rules(choice)
                        #expect(rules.session.text(of: .timeout) == expected["session.timeout"] ?? "1m")
                        #expect(rules.session.text(of: .redirects) == expected["session.redirects"] ?? "pass")
                        #expect(rules.request.text(of: .removeHeaders) == expected["request.remove_headers"] ?? "[]")
                        #expect(rules.response.text(of: .status) == expected["response.status"] ?? "null")
                    }
                }
            }
        }
    }
}

/// A generator with a fixed seed, so that a failure can be reproduced (SplitMix64).
private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
}
