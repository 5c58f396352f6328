import Foundation
import TestAuthority
import Testing

/// The commands that the documentation quotes, run as they stand there against a real host: a page that tells a person to type
/// what doesn't work is broken.
@Suite(.timeLimit(.minutes(3)))
struct DocumentedCommandsTests {
    private static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    private static func page(_ name: String) throws -> String {
        try String(contentsOfFile: "\(repository)/\(name)", encoding: .utf8)
    }

    /// What follows `$ ` in the blocks for a console, with the lines that belong to it.
    private static func commands(of page: String) throws -> [String] {
        var commands: [String] = []
        var indent: Int?
        for line in try Self.page(page).split(separator: "\n", omittingEmptySubsequences: false) {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("```") {
                indent = indent == nil && text == "```console" ? line.count - text.count : nil
            } else if let indent {
                if text.hasPrefix("$ ") { commands.append(String(text.dropFirst(2))) } else {
                    commands[commands.count - 1] += "\n" + line.dropFirst(indent)
                }
            }
        }
        return commands
    }

    /// A host, and a proxy with the files where the pages have them.
    private struct Place {
        let bed: TestBed
        let proxy: ProxyProcess
        let host: String
        let day: String

        init(_ bed: TestBed) async throws {
            self.bed = bed
            let roots = try TestRoots()
            let now = try roots.leaf("api.test")
            let next = try roots.leaf("api.test")
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(now))
            host = "api.test:\(origin.port)"
            day = Date(timeIntervalSinceNow: 10 * 86_400).formatted(.iso8601.year().month().day())
            try bed.file("api-example-com.pem", now.pem)
            try bed.file("new-chain.pem", next.chainPEM)
            let key = TestLog.list([try TestLog("A")]).split(separator: "key = ")[1].trimmingCharacters(in: .newlines)
            try bed.file(
                "log_list.json",
                """
                {"operators": [{"name": "A", "logs": [
                  {"description": "A's 'one' log", "key": "\(key)", "state": {"usable": {}}},
                  {"description": "old", "key": "AAAA", "state": {"retired": {}}}], "tiled_logs": []}]}
                """)
            let list = try roots.intermediate.revocationList(
                RevocationListTemplate().with {
                    $0.thisUpdate = TestRoots.now - 60
                    $0.nextUpdate = TestRoots.now + 30 * 86_400
                })
            try bed.file("published.crl", HeldCertificate.pem(list, label: "X509 CRL"))
            let pins = "hosts:\n  - match: \(host)\n    pinning: public-key\n    pins:\n      - \(try await now.pin(bed))\n      - \(String.wrongPin)\n"
            proxy = try await ProxyProcess(
                in: bed, folder: "config", pins: pins, trust: roots.write(to: bed), hosts: ["api.test": "127.0.0.1"])
            // The port is known by now.
            let file = try bed.contents("config/pinproxy.yaml").replacingOccurrences(
                of: "127.0.0.1:0", with: "127.0.0.1:\(proxy.port)")
            try bed.file("config/pinproxy.yaml", file)
            try bed.file(
                "bin/editor",
                """
                #!/bin/sh
                pinproxy pin --from new-chain.pem --lines >> "$1"

                """, mode: 0o755)
        }

        /// As it stands in the page, with the tests' host and dates.
        func run(_ command: String) async throws -> Run {
            let text = command.replacingOccurrences(of: "http://crl.example.com/corp.crl", with: "file://$PWD/published.crl")
                .replacingOccurrences(of: "https://api.example.com/", with: "https://\(host)/echo")
                .replacingOccurrences(of: "api.example.com", with: host).replacingOccurrences(of: "2027-03-12", with: day)
                .replacingOccurrences(of: "--for 1d", with: "--for 1s")
            let programs = (ProxyProcess.executable as NSString).deletingLastPathComponent
            return try await bed.run(
                ["/bin/sh", "-c", text],
                environment: ProxyProcess.environment(in: bed, folder: "config").merging([
                    "PATH": "\(programs):\(bed.path("bin")):\(bed.environment["PATH"] ?? "")", "EDITOR": "editor",
                ]) { $1 })
        }
    }

    /// The page's commands in their order, with their exit codes and something that they print.
    private static let pinning: [(command: String, code: Int32, prints: String)] = [
        ("pinproxy pin api.example.com", 0, "- match: api.test:"),
        ("pinproxy pin --from api-example-com.pem", 0, "- match: api.test"),
        ("pinproxy check                       # is the file well-formed?", 0, "the configuration can be used"),
        ("pinproxy explain api.example.com     # would a request be let through, and by which pin?", 0, "Let through"),
        ("pinproxy lint                        # what will hurt later?", 0, "0 warnings"),
        ("pinproxy reload", 0, "reloaded"),
        ("pinproxy learn --for 1d", 0, ""),
        ("pinproxy explain api.example.com --chain new-chain.pem --at 2027-03-12", 1, "Certificate pinning failure"),
        ("pinproxy pin --from new-chain.pem --lines", 0, "- sha256/"),
        ("$EDITOR config/pins.yaml && pinproxy check && pinproxy reload", 0, "reloaded"),
        ("pinproxy explain api.example.com --chain new-chain.pem --at 2027-03-12", 0, "Let through"),
        ("pinproxy explain api.example.com", 0, "Let through"),
    ]

    @Test func thePageAboutPinningCanBeFollowed() async throws {
        let commands = try Self.commands(of: "docs/pinning.md")
        #expect(commands.prefix(Self.pinning.count).elementsEqual(Self.pinning.map(\.command)), "\(commands)")
        #expect(commands.count == Self.pinning.count + 2, "\(commands)")
        try await withTestBed { bed in
            let place = try await Place(bed)
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
            let place = try await Place(bed)
            let commands = try Self.commands(of: "docs/troubleshooting.md")
            #expect(commands.count == 3)
            for command in commands {
                let run = try await place.run(command)
                #expect(run.succeeded, "\(run)")
            }
        }
    }

    /// No event of the log is missing from its page, and none stands there that is never logged.
    @Test func everyEventIsListed() throws {
        var named: Set<String> = []
        let sources = FileManager.default.enumerator(atPath: "\(Self.repository)/Sources")
        while let file = sources?.nextObject() as? String {
            guard file.hasSuffix(".swift") else { continue }
            let text = try Self.page("Sources/\(file)")
            let calls = /(?:(?:logger\.(?:trace|debug|info|notice|warning|error|critical)|warn|log|Shortage)\(\s*(?:\.[a-z]+,\s*)?|event: )(?:[^"\n]*\? )?"([a-z]+(?:\.[a-z]+)*)"(?: : "([a-z.]+)")?/
            for call in text.matches(of: calls) {
                named.insert(String(call.output.1))
                if let other = call.output.2 { named.insert(String(other)) }
            }
        }
        let listed = try Self.page("docs/log.md").split(separator: "## Fields")[0].split(separator: "\n").filter { $0.hasPrefix("| `") }
            .flatMap { $0.split(separator: "|")[0].matches(of: /`([a-z.]+)`/).map { String($0.output.1) } }
        #expect(named.contains("exchange") && named.contains("pin.mismatch") && named.contains("trust.failure"), "\(named)")
        #expect(named.subtracting(listed).sorted() == [], "missing from docs/log.md")
        #expect(Set(listed).subtracting(named).sorted() == [], "never logged")
        #expect(listed.count == Set(listed).count)
    }

    /// Links between the pages lead somewhere.
    @Test(arguments: ["README.md", "docs/pinning.md", "docs/troubleshooting.md", "docs/log.md", "docs/state.md", "docs/verify-tunnel.md",
        "docs/interception.md", "docs/testing.md"])
    func linksLeadSomewhere(page: String) throws {
        let folder = (page as NSString).deletingLastPathComponent
        for link in try Self.page(page).matches(of: /\]\(([^)\s]+)\)/).map({ String($0.output.1) }) where !link.contains("://") {
            let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let target = parts[0].isEmpty ? page : (folder.isEmpty ? parts[0] : ((folder + "/" + parts[0]) as NSString).standardizingPath)
            let path = "\(Self.repository)/\(target)"
            #expect(FileManager.default.fileExists(atPath: path), "\(page): \(link)")
            guard parts.count == 2, target.hasSuffix(".md") else { continue }
            let anchors = try Self.page(target).split(separator: "\n").filter { $0.hasPrefix("#") }.map { heading in
                heading.drop { $0 == "#" || $0 == " " }.lowercased().filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" || $0 == "_" }
                    .replacingOccurrences(of: " ", with: "-")
            }
            #expect(anchors.contains(parts[1]), "\(page): \(link)")
        }
    }
}
