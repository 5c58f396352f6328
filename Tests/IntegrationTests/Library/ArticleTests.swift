import Foundation
import PinnedSession
import Testing

/// The articles of the DocC catalogues: their code compiles and runs, and the reference builds without a warning.
@Suite(.timeLimit(.minutes(5)))
struct ArticleTests {
    /// What an article's program prints, besides what depends on the machine.
    private static let expected = [
        "GettingStarted": ["Pins has 12 pages", "300004 of 300004 bytes", "status 200"],
        "FromAFNetworking": [
            "/v1/search?words%5B%5D=pinned&words%5B%5D=session&limit=10", "status 200, counted: true",
        ],
        "FromURLSession": ["status 200, 1000000 bytes", "2 of pin"],
        "TestingWithYourOwnAuthority": ["matched(pin: \"PIN\")", "refused, as it should be"],
        "PinnedSession": ["200 11"],
        "ChoosingPins": ["2 pins, contradictions: 0", "sha1"],
        "Serializers": ["/search?name=pin&tags%5B%5D=a&tags%5B%5D=b&weight=0.5", "text/html"],
        "PinproxyReachability": [": "],
    ]

    private struct Article {
        let name: String
        /// Its blocks in Swift, but those of a manifest, one after the other.
        let program: String
    }

    private static func articles() throws -> [Article] {
        let files = try FileManager.default.subpathsOfDirectory(atPath: "\(Documentation.repository)/Sources")
        return try files.filter { $0.contains(".docc/") && $0.hasSuffix(".md") }.sorted().compactMap { file in
            let blocks = try Documentation.blocks("swift", of: "Sources/" + file)
                .filter { !$0.contains(".package(url:") && !$0.contains(".product(") }
            let name = ((file as NSString).lastPathComponent as NSString).deletingPathExtension
            return blocks.isEmpty ? nil : Article(name: name, program: blocks.joined(separator: "\n"))
        }
    }

    @Test func everyArticleCompilesAndRuns() async throws {
        try await withLibraryBed { bed in
            let articles = try Self.articles()
            #expect(articles.map(\.name).sorted() == Self.expected.keys.sorted())
            let origin = try await bed.peer("articles_origin.py")
            let pin = try await bed.leaf.pin(bed.bed)
            let report = bed.bed.path("report.pdf")
            // One program has a function for each article.
            var imports: Set<Substring> = []
            var functions = ""
            for article in articles {
                let lines = article.program
                    .replacing("api.example.com", with: "api.localhost:\(origin.port)")
                    .replacing("sha256/tTy+KvdRQJuVitSjfwrRHh9K+vUtvmDpT7WHJawpqUE=", with: pin)
                    .replacing("/etc/example/authority.pem", with: bed.trust)
                    .replacing("/var/tmp/report.pdf", with: report)
                    .replacing(
                        "SessionConfiguration()\n", with: "SessionConfiguration()\nconfiguration.trust = authority\n"
                    )
                    .replacing("SessionManager()", with: "SessionManager(configuration: trusting())")
                    .split(separator: "\n", omittingEmptySubsequences: false)
                imports.formUnion(lines.filter { $0.hasPrefix("import ") })
                functions += "func article\(article.name)() async throws {\n"
                functions += lines.filter { !$0.hasPrefix("import ") }.joined(separator: "\n") + "}\n"
            }
            imports.insert("import PinnedSession")
            let main =
                imports.sorted().joined(separator: "\n") + """

                    let authority = TrustSource.files(["\(bed.trust)"])
                    func trusting() -> SessionConfiguration {
                        var configuration = SessionConfiguration()
                        configuration.trust = authority
                        return configuration
                    }
                    \(functions)
                    switch CommandLine.arguments[1] {
                    \(articles.map { "case \"\($0.name)\": try await article\($0.name)()" }.joined(separator: "\n"))
                    default: fatalError()
                    }

                    """
            let program = bed.bed.path("articles")
            let compiled = try await LibraryBuild.compile(bed.bed.file("main.swift", main), to: program, in: bed.bed)
            try #require(compiled.succeeded, "\(compiled)")
            for article in articles {
                let run = try await bed.bed.run([program, article.name])
                #expect(run.succeeded, "\(article.name): \(run)")
                for text in Self.expected[article.name] ?? [] {
                    #expect(run.output.contains(text.replacing("PIN", with: pin)), "\(article.name): \(run)")
                }
            }
            #expect(try Data(contentsOf: URL(filePath: report)).count == 300_004)
        }
    }

    /// A session trusts the certificates that the article makes with openssl.
    @Test func theArticlesAuthorityIsTrusted() async throws {
        try await withTestBed { bed in
            let page = "Sources/PinnedSession/PinnedSession.docc/TestingWithYourOwnAuthority.md"
            let commands = try Documentation.blocks("sh", of: page)
            try #require(commands.count == 1)
            let made = try await bed.run(["sh", "-ec", "cd \"$0\"; \(commands[0])", bed.directory])
            try #require(made.succeeded, "\(made)")
            let origin = try await PythonPeer(
                in: bed, script: "articles_origin.py",
                ["--certificate", bed.path("server.pem"), "--key", bed.path("server.key")])
            var configuration = SessionConfiguration()
            configuration.trust = .files([bed.path("authority.pem")])
            let session = try SessionManager(configuration: configuration)
            let url = "https://api.localhost:\(origin.port)/v1/status"
            #expect(try await session.data(for: HTTPRequest(url)).response.status == 200)
        }
    }

    @Test func theReferenceBuildsWithoutAWarning() async throws {
        try await withTestBed { bed in
            let output = bed.path("reference")
            let run = try await LibraryBuild.tool(
                bed, ["\(Documentation.repository)/.ci/reference", output, LibraryBuild.directory])
            #expect(run.succeeded, "\(run)")
            let archives = try FileManager.default.contentsOfDirectory(atPath: output)
            #expect(archives.contains("PinnedSession") && archives.contains("PinproxySecurity"), "\(archives)")
        }
    }
}
