import Foundation
import PinproxyTestAuthority
import Testing

/// The library as a program of another package sees it: every symbol is documented, and the example in
/// `docs/library.md` works.
@Suite(.timeLimit(.minutes(5)))
struct LibraryDocumentationTests {
    static let products = [
        "PinnedSession", "PinnedSessionFoundation", "PinnedSessionLogging", "PinnedSessionMetrics",
        "PinnedSessionService", "PinproxySecurity", "PinproxySerialization", "PinproxyReachability",
    ]

    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Comment: Decodable {}
            let pathComponents: [String]
            let docComment: Comment?
        }
        let symbols: [Symbol]
    }

    @Test(arguments: products) func everyPublicSymbolIsDocumented(_ module: String) async throws {
        try await withTestBed { bed in
            #if arch(arm64)
                let target = "aarch64-unknown-linux-gnu"
            #else
                let target = "x86_64-unknown-linux-gnu"
            #endif
            let run = try await LibraryBuild.tool(
                bed,
                [
                    "swift", "symbolgraph-extract", "-module-name", module, "-target", target, "-output-dir",
                    bed.directory,
                ]
                    + ["-minimum-access-level", "public", "-skip-synthesized-members"] + LibraryBuild.importing())
            #expect(run.succeeded, "\(run)")
            // Extensions of another module's types are in separate files.
            let files = try FileManager.default.contentsOfDirectory(atPath: bed.directory)
                .filter { $0.hasSuffix(".symbols.json") }
            let symbols = try files.flatMap { file in
                try JSONDecoder().decode(Graph.self, from: Data(contentsOf: URL(fileURLWithPath: bed.path(file))))
                    .symbols
            }
            #expect(!symbols.isEmpty)
            let undocumented = symbols.filter { $0.docComment == nil }.map {
                $0.pathComponents.joined(separator: ".")
            }
            #expect(undocumented.isEmpty, "\(undocumented)")
        }
    }

    @Test func theOtherExamplesCompile() async throws {
        try await withTestBed { bed in
            let blocks = try Documentation.blocks("swift examples", of: "docs/library.md")
            #expect(blocks.count == 2)
            let file = try bed.file("examples.swift", blocks.joined(separator: "\n"))
            let arguments = ["swiftc", "-swift-version", "6", "-typecheck", "-parse-as-library", file]
            let run = try await LibraryBuild.tool(bed, arguments + LibraryBuild.importing())
            #expect(run.succeeded, "\(run)")
        }
    }

    @Test func theExampleCompilesAndRuns() async throws {
        try await withLibraryBed { bed in
            let text = try Documentation.blocks("swift main", of: "docs/library.md")
            #expect(text.count == 1)
            let main = try bed.bed.file("main.swift", text[0])
            let compiled = try await LibraryBuild.compile(main, to: bed.bed.path("fetch"), in: bed.bed)
            try #require(compiled.succeeded, "\(compiled)")

            let pin = try await bed.leaf.pin(bed.bed)
            let host = "api.localhost:\(bed.origin.port)"
            func fetch(_ path: String, _ pin: String) async throws -> Run {
                try await bed.bed.run([bed.bed.path("fetch"), host, path, pin, bed.bed.path("got"), bed.trust])
            }
            let location =
                "/answer/moved/" + encoded("HTTP/1.1 302 Moved\r\nLocation: /large/300000\r\nContent-Length: 0\r\n\r\n")
            let run = try await fetch(location, pin)
            #expect(run.succeeded && run.output.contains("redirected to https://\(host)/large/300000"), "\(run)")
            #expect(run.output.contains("2 requests") && run.output.contains("300000 bytes"), "\(run)")
            #expect(run.output.contains("by \(pin)"), "\(run)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: bed.bed.path("got"))).count == 300_000)
            let mismatch = try await fetch("/never", .wrongPin)
            #expect(
                mismatch.output.contains("not the server that was meant") && mismatch.output.contains(pin),
                "\(mismatch)")
            #expect(try await !bed.targets().contains("/never"))
            let failed = try await fetch("/truncated/length", pin)
            #expect(failed.output.contains("failed: \(host): "), "\(failed)")
        }
    }
}
