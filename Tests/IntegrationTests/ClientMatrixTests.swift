import Foundation
import PinproxyClients
import PinproxyTestAuthority
import Testing

@testable import pinproxy

/// Runs every known program under `pinproxy exec` against a local origin. A right pin works; a wrong one is refused,
/// and the reason shows.
@Suite(.sharedBed(ClientMatrixBed.prepare), .timeLimit(.minutes(10)))
struct ClientMatrixTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    /// Runs a program under `pinproxy exec`, in a separate directory.
    private func run(
        _ script: String, _ host: String, options: [String] = [], home: String? = nil
    ) async throws -> Run {
        // Short, because Chromium puts a socket in it.
        let place = shared.bed.path("c\(UInt32.random(in: 0...UInt32.max))")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        let variables = [
            "HOME": home ?? shared.bed.directory, "SITE": "https://\(host):\(shared.originPort)", "HOST": host,
            "PORT": "\(shared.originPort)",
        ]
        return try await shared.bed.run(
            shared.bed.execArguments(options, ["/bin/sh", "-ec", "cd \"$0\"; \(script)", place]),
            environment: ProxyProcess.environment(in: shared.bed).merging(InstalledClients.environment(in: shared.bed))
            { $1 }
            .merging(ClientProgram.environment(in: place)) { $1 }.merging(variables) { $1 })
    }

    private func isInstalled(_ program: ClientProgram) async throws -> Bool {
        let version = try await shared.bed.run(
            ["/bin/sh", "-ec", program.version], environment: InstalledClients.environment(in: shared.bed))
        if InstalledClients.areAll, !InstalledClients.unobtainable.contains(program.name) {
            #expect(version.succeeded, "it was to be installed: \(version)")
        }
        return version.succeeded
    }

    @Test(arguments: InstalledClients.programs) func rightPinsWorkAndWrongOnesDont(program: ClientProgram) async throws
    {
        guard try await isInstalled(program) else { return }
        // `pinproxy exec` runs the shell here, not the program.
        let options = ProxyURL.mustBePlain(for: program.name) ? ["--plain-url"] : []
        let wrong = try await run(program.call, "wrong.test", options: options)
        #expect(!wrong.succeeded, "\(wrong)")
        let right = try await run(program.call, "right.test", options: options)
        if right.succeeded {
            #expect(wrong.tells(of: "wrong.test:\(shared.originPort)"), "\(wrong)")
            return
        }
        let remedy = try #require(program.remedy, "it doesn't work, and nothing is known to help: \(right)")
        guard let call = remedy.call else { return }
        let helped = try await run(call, "right.test", options: options)
        #expect(helped.succeeded, "\(remedy.text): \(helped)")
        let refused = try await run(call, "wrong.test", options: options)
        #expect(
            !refused.succeeded && refused.tells(of: "wrong.test:\(shared.originPort)"), "\(remedy.text): \(refused)")
    }

    /// A browser has its own certificate store.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/certutil")))
    func chromiumTrustsWhatIsInstalledForBrowsers() async throws {
        let program = try #require(ClientProgram.all.first { $0.name == "chromium" })
        guard try await isInstalled(program) else { return }
        let home = shared.bed.path("h")
        #expect(try await !run(program.call, "right.test", home: home).succeeded)
        let installed = try await shared.bed.run(
            [ProxyProcess.executable, "ca", "install", "--nss", "--config", shared.bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: shared.bed).merging(["HOME": home]) { $1 })
        #expect(installed.succeeded, "\(installed)")
        let right = try await run(program.call, "right.test", home: home)
        #expect(right.succeeded, "\(right)")
        let wrong = try await run(program.call, "wrong.test", home: home)
        #expect(!wrong.succeeded && wrong.output.contains("ERR_TUNNEL_CONNECTION_FAILED"), "\(wrong)")
        #expect(wrong.tells(of: "wrong.test:\(shared.originPort)"), "\(wrong)")
    }

    // MARK: docs/clients.md

    /// The page agrees with what `pinproxy doctor` finds for the versions installed here. With all programs
    /// the table is written.
    @Test func thePageIsCurrent() async throws {
        let bed = shared.bed
        var found: [ClientReport] = []
        let environment = ProxyProcess.environment(in: bed).merging(InstalledClients.environment(in: bed)) { $1 }
        for program in InstalledClients.programs {
            let run = try await bed.run(
                [
                    ProxyProcess.executable, "doctor", "--json", "--timeout", "60", "--config",
                    bed.path("proxy/pinproxy.yaml"), program.name,
                ],
                environment: environment)
            if run.output.isEmpty {
                #expect(run.errors.contains("is not installed here"), "\(run)")
                continue
            }
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let reports = try decoder.decode([ClientReport].self, from: Data(run.output.utf8))
            #expect(run.succeeded == reports.allSatisfy(\.works), "\(run)")
            found += reports
        }
        #expect(found.contains { $0.client == "curl" && $0.works }, "\(found)")
        if InstalledClients.areAll { try ClientPage.write(found) }
        let written = try ClientPage.rows()
        #expect(Set(written.keys).isSubset(of: ClientProgram.all.map(\.name)), "a program that isn't known")
        for report in found {
            let row = try #require(written[report.client], "\(report.client) has no row: make test-clients")
            guard row.contains("| \(report.version) |") else { continue }
            #expect(row == ClientPage.row(report), "run make test-clients, and look at the difference")
        }
    }
}

extension Run {
    /// `pinproxy exec` said why a host was refused.
    fileprivate func tells(of host: String) -> Bool {
        told.contains { $0.hasPrefix("pinproxy: \(host): Certificate pinning failure for wrong.test") }
    }
}

/// The table in docs/clients.md.
private enum ClientPage {
    private static let path = "\(Documentation.repository)/docs/clients.md"
    private static let heading =
        "| program | version | takes the proxy | trusts the authority | shows of a refusal | further settings |"

    static func row(_ report: ClientReport) -> String {
        func word(_ answer: Bool?) -> String { answer.map { $0 ? "yes" : "no" } ?? "–" }
        let shown =
            switch report.shows {
            case .reason: "the reason"
            case .status: "502"
            case .nothing: "nothing"
            }
        let columns = [
            "`\(report.client)`", report.version, word(report.takesProxy), word(report.trustsAuthority),
            report.works ? shown : "–", report.works ? "–" : report.set ?? "",
        ]
        return "| \(columns.joined(separator: " | ")) |"
    }

    /// By the program.
    static func rows() throws -> [String: String] {
        let rows = try table().rows.map { row in (String(row.split(separator: "`")[1]), String(row)) }
        return Dictionary(rows) { first, _ in first }
    }

    /// What wasn't found here stays as it is.
    static func write(_ reports: [ClientReport]) throws {
        let (table, old) = (try table(), try rows())
        let fresh = Dictionary(reports.map { ($0.client, row($0)) }) { first, _ in first }
        let rows = ClientProgram.all.compactMap { fresh[$0.name] ?? old[$0.name] }.map { Substring($0) }
        let head = [Substring(heading), "|---|---|---|---|---|---|"]
        let lines = table.before + head + rows + table.after
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
    }

    private static func table() throws -> (before: [Substring], rows: ArraySlice<Substring>, after: [Substring]) {
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0 == heading }, "docs/clients.md has no table of programs")
        let end = lines[start...].firstIndex { !$0.hasPrefix("|") } ?? lines.endIndex
        return (Array(lines[..<start]), lines[(start + 2)..<end], Array(lines[end...]))
    }
}

enum ClientMatrixBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let leaf = try roots.leaf("right.test", "wrong.test")
        // The pages of the proxy's own test hosts, each under its type.
        var locations = "location / { return 200 '\(TestSite.greeting)\n'; }\n"
        for (path, page) in TestSite.pages(of: "https://$http_host") {
            locations += "location = \(path) { default_type \(page.type); return 200 '\(page.text)'; }\n"
        }
        let nginx = try await NginxOrigin(
            in: bed, sites: [.init(name: "right.test wrong.test", chain: ServedChain(leaf))], locations: locations)
        let pins = """
            hosts:
              - match: right.test
                pinning: public-key
                pins: [\(try await leaf.pin(bed))]
              - match: wrong.test
                pinning: public-key
                pins: [\(String.wrongPin)]

            """
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed),
            hosts: ["right.test": "127.0.0.1", "wrong.test": "127.0.0.1"],
            sections: [
                "proxy": ["listen: 127.0.0.1:\(bed.port())"],
                // Many programs run at once, and some are slow to start.
                "timeouts": ["tls_handshake: 60s"],
            ])
        return SharedBed(bed: bed, proxy: proxy, originPort: nginx.port)
    }
}
