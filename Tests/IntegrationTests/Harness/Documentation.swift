import Foundation
import PinproxyTestAuthority

/// The documentation pages in the repository.
enum Documentation {
    static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().path

    static func text(_ name: String) throws -> String {
        try String(contentsOfFile: "\(repository)/\(name)", encoding: .utf8)
    }

    static let all = [
        "README.md", "docs/README.md", "docs/pinning.md", "docs/troubleshooting.md", "docs/log.md", "docs/state.md",
        "docs/verify-tunnel.md",
        "docs/bundles.md", "docs/interception.md", "docs/rules.md", "docs/addresses.md", "docs/testing.md",
        "docs/architecture.md",
        "docs/operations.md", "docs/reachability.md", "docs/tasks.md", "docs/cache.md", "docs/SECURITY.md",
        "docs/CONTRIBUTING.md",
        "docs/CHANGELOG.md", "docs/clients.md", "docs/identity.md", "docs/fleet.md", "Benchmarks/README.md",
    ]

    /// The commands after `$ ` in console blocks, with their continuation lines.
    static func commands(of page: String) throws -> [String] {
        var commands: [String] = []
        var indent: Int?
        for line in try text(page).split(separator: "\n", omittingEmptySubsequences: false) {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("```") {
                indent = indent == nil && text == "```console" ? line.count - text.count : nil
            } else if let indent {
                if text.hasPrefix("$ ") {
                    commands.append(String(text.dropFirst(2)))
                } else {
                    commands[commands.count - 1] += "\n" + line.dropFirst(indent)
                }
            }
        }
        return commands
    }

    /// The text in backticks outside of blocks.
    static func quotes(of page: String) throws -> [String] {
        var isBlock = false
        let lines = try text(page).split(separator: "\n", omittingEmptySubsequences: false).filter { line in
            let isFence = line.drop { $0 == " " }.hasPrefix("```")
            if isFence { isBlock.toggle() }
            return !isBlock && !isFence
        }
        let parts = lines.joined(separator: " ").split(separator: "`", omittingEmptySubsequences: false)
        return parts.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }

    /// The blocks in this language, without their indentation.
    static func blocks(_ language: String, of page: String) throws -> [String] {
        var blocks: [String] = []
        var indent: Int?
        for line in try text(page).split(separator: "\n", omittingEmptySubsequences: false) {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("```") {
                indent = indent == nil && text == "```\(language)" ? line.count - text.count : nil
                if indent != nil { blocks.append("") }
            } else if let indent {
                blocks[blocks.count - 1] += line.dropFirst(indent) + "\n"
            }
        }
        return blocks
    }
}

/// A host, and a proxy with the files where the pages have them.
struct DocumentedPlace {
    let bed: TestBed
    let proxy: ProxyProcess
    let host: String
    private let day: String

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
        let pins =
            """
            hosts:\n  - match: \(host)\n    pinning: public-key\n    pins:\n      - \(try await now.pin(bed))\n      - \
            \(String.wrongPin)\n
            """
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

    /// The text of a page with the tests' host and dates.
    func here(_ text: String) -> String {
        text.replacingOccurrences(of: "http://crl.example.com/corp.crl", with: "file://$PWD/published.crl")
            .replacingOccurrences(of: "https://api.example.com/", with: "https://\(host)/echo")
            .replacingOccurrences(of: "api.example.com", with: host).replacingOccurrences(of: "2027-03-12", with: day)
            .replacingOccurrences(of: "--for 1d", with: "--for 1s")
            .replacingOccurrences(of: "https://www.debian.org/", with: "https://\(host)/echo")
            .replacingOccurrences(of: "www.debian.org", with: host)
    }

    /// Runs a command of a page, with the tests' host and dates.
    func run(_ command: String) async throws -> Run {
        let programs = (ProxyProcess.executable as NSString).deletingLastPathComponent
        return try await bed.run(
            ["/bin/sh", "-c", here(command)],
            environment: ProxyProcess.environment(in: bed, folder: "config").merging([
                "PATH": "\(programs):\(bed.path("bin")):\(bed.environment["PATH"] ?? "")", "EDITOR": "editor",
            ]) { $1 })
    }
}
