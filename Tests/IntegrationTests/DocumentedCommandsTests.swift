import Foundation
import PinproxyTestAuthority
import Testing

/// Runs the documentation's commands verbatim against a real host. A page with a command that doesn't work is broken.
@Suite(.timeLimit(.minutes(5)))
struct DocumentedCommandsTests {
    /// The page's commands in order, with their exit codes and something that they print.
    private static let pinning: [(command: String, code: Int32, prints: String)] = [
        ("pinproxy pin api.example.com", 0, "- match: api.test:"),
        ("pinproxy pin --from api-example-com.pem", 0, "- match: api.test"),
        ("pinproxy check                       # is the file well-formed?", 0, "the configuration can be used"),
        ("pinproxy explain api.example.com     # would a request be let through, and by which pin?", 0, "Let through"),
        ("pinproxy lint                        # what will cause an outage?", 0, "0 warnings"),
        ("pinproxy reload", 0, "reloaded"),
        ("pinproxy learn --for 1d", 0, ""),
        ("pinproxy explain api.example.com --chain new-chain.pem --at 2027-03-12", 1, "Certificate pinning failure"),
        ("pinproxy pin --from new-chain.pem --lines", 0, "- sha256/"),
        ("$EDITOR config/pins.yaml && pinproxy check && pinproxy reload", 0, "reloaded"),
        ("pinproxy explain api.example.com --chain new-chain.pem --at 2027-03-12", 0, "Let through"),
        ("pinproxy explain api.example.com", 0, "Let through"),
    ]

    @Test func thePageAboutPinningCanBeFollowed() async throws {
        let commands = try Documentation.commands(of: "docs/pinning.md")
        #expect(commands.prefix(Self.pinning.count).elementsEqual(Self.pinning.map(\.command)), "\(commands)")
        #expect(commands.count == Self.pinning.count + 2, "\(commands)")
        try await withTestBed { bed in
            let place = try await DocumentedPlace(bed)
            for (command, code, text) in Self.pinning {
                let run = try await place.run(command)
                #expect(run.ending == .exited(code), "\(run)")
                #expect(text.isEmpty || run.output.contains(text), "\(text): \(run)")
            }
            // A revocation list, fetched; and a list of logs, converted.
            let fetched = try await place.run(commands[Self.pinning.count])
            #expect(fetched.succeeded, "\(fetched)")
            let converted = try await place.run(commands[Self.pinning.count + 1])
            #expect(converted.succeeded, "\(converted)")
            try bed.file(
                "config/pins.yaml",
                "defaults: {crl_files: [../corp.crl], ct_log_list: ../logs.cnf}\nhosts: []\n")
            let check = try await place.run("pinproxy check")
            #expect(check.succeeded && check.errors.isEmpty, "\(check)")
        }
    }

    @Test func thePageAboutTroubleCanBeFollowed() async throws {
        try await withTestBed { bed in
            let place = try await DocumentedPlace(bed)
            let commands = try Documentation.commands(of: "docs/troubleshooting.md")
            #expect(commands.count == 3)
            for command in commands {
                let run = try await place.run(command)
                #expect(run.succeeded, "\(run)")
            }
        }
    }

    /// Signed policy, from a draft to taking it back, without the steps for one machine alone.
    @Test func thePageAboutSignedPolicyCanBeFollowed() async throws {
        let commands = try Documentation.commands(of: "docs/fleet.md").filter {
            $0.hasPrefix("pinproxy bundle ") || $0.contains("/srv/policy")
        }
        #expect(commands.count == 14, "\(commands)")
        try await withTestBed { bed in
            let place = try await DocumentedPlace(bed)
            let policy = try await SignedPolicyBed(bed)
            try await policy.sign("hosts: []\n")
            try FileManager.default.createDirectory(atPath: bed.path("srv"), withIntermediateDirectories: true)
            for (copy, name) in [
                ("policy.bundle", "made.bundle"), ("srv/policy.bundle", "made.bundle"), ("reviewer.pem", "policy.pem"),
                ("timestamp.pem", "policy.pem"),
            ] {
                try FileManager.default.copyItem(atPath: bed.path(name), toPath: bed.path(copy))
            }
            try bed.file("bin/policy-timestamp", try Documentation.text("docs/fleet/policy-timestamp"), mode: 0o755)
            for name in ["pins.yaml", "config/pins.yaml"] { try bed.file(name, "hosts: []\n") }
            try bed.file("former-pins.yaml", "hosts: []\n")
            let section = policy.lines()["policy"]?.map { "  \($0)\n" }.joined() ?? ""
            try bed.file(
                "config/pinproxy.yaml", "policy:\n\(section)upstream: {trust: [\(policy.trust)]}\npins: pins.yaml\n")
            for command in commands {
                let run = try await place.run(
                    command.replacingOccurrences(of: "/srv/policy", with: bed.path("srv"))
                        .replacingOccurrences(of: "/etc/policy", with: bed.path("."))
                        .replacingOccurrences(
                            of: "bundle rehearse", with: "bundle rehearse --config config/pinproxy.yaml"))
                #expect(run.succeeded, "\(run)")
            }
        }
    }

    /// The first five minutes with pinproxy. Variables set by the first commands apply to all later ones.
    @Test func theReadmeCanBeFollowed() async throws {
        let commands = try Documentation.commands(of: "README.md")
        let (make, shell, rest) = (commands.prefix(2), commands.dropFirst(2).prefix(2), commands.dropFirst(4))
        let targets = try Documentation.text("Makefile").split(separator: "\n").compactMap {
            $0.split(separator: ":").first
        }
        for command in make { #expect(targets.contains { command.hasPrefix("make \($0) ") }, "\(command)") }
        let head = "curl -I https://www.debian.org/"
        #expect(rest == [head, "pinproxy reload", head, "pinproxy reload", head])
        try await withTestBed { bed in
            let place = try await DocumentedPlace(bed)
            try FileManager.default.createDirectory(
                atPath: bed.path(".build/release"), withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: bed.path(".build/release/pinproxy"), withDestinationPath: ProxyProcess.executable)
            func type(_ command: String) async throws -> Run {
                try await place.run((shell + [command]).joined(separator: "\n"))
            }
            let shipped = try Documentation.text("config/pins.yaml")
            let entry = try #require(try Documentation.blocks("yaml", of: "README.md").first)
            try bed.file("config/pins.yaml", shipped)
            #expect(try await type("pinproxy reload").succeeded)
            let first = try await type(head)
            #expect(first.succeeded && first.output.contains("200"), "\(first)")

            let wrong = shipped.replacing(/(?m)^hosts:$/, with: place.here(entry))
            try bed.file("config/pins.yaml", wrong)
            #expect(try await type("pinproxy reload").output.contains("reloaded"))
            let refused = try await type(head)
            #expect(
                !refused.succeeded && refused.output.contains("502 Certificate pinning failure for api.test"),
                "\(refused)")
            #expect(refused.errors.contains("CONNECT tunnel failed"), "\(refused)")

            let shown = try await type("pinproxy pin www.debian.org --lines")
            try bed.file(
                "config/pins.yaml",
                wrong.replacingOccurrences(of: "      - \(String.wrongPin)\n", with: shown.output + "\n"))
            let reloaded = try await type("pinproxy reload")
            #expect(reloaded.succeeded, "\(reloaded) \(shown)")
            let last = try await type(head)
            #expect(last.succeeded && last.output.contains("200"), "\(last)")
        }
    }

    /// `explain` prints for the example in the page about rules what the page shows.
    @Test func thePageAboutRulesCanBeFollowed() async throws {
        try await withTestBed { bed in
            let place = try await DocumentedPlace(bed)
            let (rules, console) = (
                try Documentation.blocks("yaml", of: "docs/rules.md"),
                try Documentation.blocks("console", of: "docs/rules.md")
            )
            try bed.file("config/pins.yaml", place.here(try #require(rules.first)))
            var lines = try #require(console.first).split(separator: "\n").map(String.init)
            let run = try await place.run(String(lines.removeFirst().dropFirst(2)))
            #expect(run.succeeded, "\(run)")
            let printed = run.output.split(separator: "\n")
            for line in lines where line != "…" { #expect(printed.contains { $0 == line }, "\(line): \(run)") }
        }
    }

    /// Each configuration example can be pasted, once pins replace its dots.
    @Test(arguments: [
        "README.md", "docs/verify-tunnel.md", "docs/troubleshooting.md", "docs/rules.md", "docs/pinning.md",
        "docs/cache.md",
    ])
    func examplesOfConfigurationAreAccepted(page: String) async throws {
        try await withTestBed { bed in
            let client = try TestRoots().leaf("client.test") { $0.extendedKeyUsage = [] }
            try bed.file("config/client.pem", client.chainPEM)
            try bed.file("config/client.key", client.keyPEM)
            try bed.file("config/pinproxy.yaml", "pins: pins.yaml\n")
            let examples = try Documentation.blocks("yaml", of: page)
            #expect(!examples.isEmpty)
            for example in examples {
                var text = example.replacingOccurrences(of: "sha256/…", with: String.wrongPin)
                // An entry's keys, or an entry.
                if text.hasPrefix("    ") {
                    text =
                        "  - match: api.example.com\n    pinning: public-key\n    pins: [\(String.wrongPin)]\n" + text
                }
                if text.hasPrefix("  - match:") { text = "hosts:\n" + text }
                try bed.file("config/pins.yaml", text)
                let run = try await bed.run([
                    ProxyProcess.executable, "check", "--config", bed.path("config/pinproxy.yaml"),
                ])
                #expect(run.succeeded, "\(text)\n\(run)")
            }
        }
    }

    /// Every command and option that a page mentions is one that `--help` knows.
    @Test(arguments: Documentation.all)
    func commandsWithinTheTextExist(page: String) async throws {
        try await withTestBed { bed in
            var helps: [String: String] = [:]
            let quotes = try Documentation.quotes(of: page).compactMap { quote in
                quote.firstMatch(of: /(?:^|[ (])pinproxy ([a-z][^)|]*)/).map { String($0.output.1) }
            }
            for quote in quotes {
                // Everything after -- belongs to another program.
                let words = quote.split(separator: " -- ")[0].split(separator: " ").map(String.init)
                let command = ["ca", "bundle"].contains(words[0]) ? Array(words.prefix(2)) : [words[0]]
                let name = command.joined(separator: " ")
                if helps[name] == nil {
                    let run = try await bed.run([ProxyProcess.executable] + command + ["--help"])
                    #expect(run.succeeded && run.output.contains("USAGE: pinproxy \(name)"), "\(page): \(quote)")
                    helps[name] = run.output
                }
                for option in words where option.hasPrefix("--") {
                    #expect(helps[name]?.contains(option) == true, "\(page): \(quote)")
                }
            }
        }
    }

    /// Every logged event is on its page, and every event there is logged.
    @Test func everyEventIsListed() throws {
        var named: Set<String> = []
        let sources = FileManager.default.enumerator(atPath: "\(Documentation.repository)/Sources")
        while let file = sources?.nextObject() as? String {
            guard file.hasSuffix(".swift") else { continue }
            let text = try Documentation.text("Sources/\(file)")
            let calls =
                #/
                (?:(?:logger\.(?:trace|debug|info|notice|warning|error|critical)|warn|log|Shortage)
                \(\s*(?:(?:level:\x20)?\.[a-z]+,\s*)?|event:\x20)(?:[^"\n]*\?\x20)?
                "([a-z]+(?:\.[a-z]+)*)"(?:\x20:\x20"([a-z.]+)")?
                /#
            for call in text.matches(of: calls) {
                named.insert(String(call.output.1))
                if let other = call.output.2 { named.insert(String(other)) }
            }
        }
        let listed = try Documentation.text("docs/log.md").split(separator: "## Fields")[0].split(separator: "\n")
            .filter { $0.hasPrefix("| `") }
            .flatMap { $0.split(separator: "|")[0].matches(of: /`([a-z.]+)`/).map { String($0.output.1) } }
        #expect(
            named.contains("exchange") && named.contains("pin.mismatch") && named.contains("trust.failure"), "\(named)")
        #expect(named.subtracting(listed).sorted() == [], "missing from docs/log.md")
        #expect(Set(listed).subtracting(named).sorted() == [], "never logged")
        #expect(listed.count == Set(listed).count)
    }

    /// Links between the pages lead somewhere.
    @Test(arguments: Documentation.all)
    func linksLeadSomewhere(page: String) throws {
        let folder = (page as NSString).deletingLastPathComponent
        for link in try Documentation.text(page).matches(of: /\]\(([^)\s]+)\)/).map({ String($0.output.1) })
        where !link.contains("://") {
            let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let target =
                parts[0].isEmpty
                ? page : (folder.isEmpty ? parts[0] : ((folder + "/" + parts[0]) as NSString).standardizingPath)
            let path = "\(Documentation.repository)/\(target)"
            #expect(FileManager.default.fileExists(atPath: path), "\(page): \(link)")
            guard parts.count == 2, target.hasSuffix(".md") else { continue }
            let anchors = try Documentation.text(target).split(separator: "\n").filter { $0.hasPrefix("#") }.map {
                heading in
                heading.drop { $0 == "#" || $0 == " " }.lowercased().filter {
                    $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" || $0 == "_"
                }
                .replacingOccurrences(of: " ", with: "-")
            }
            #expect(anchors.contains(parts[1]), "\(page): \(link)")
        }
    }
}
