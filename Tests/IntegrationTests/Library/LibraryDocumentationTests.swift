import Foundation
import PinproxyTestAuthority
import Testing

/// The library as a program of another package sees it: what it is told of each symbol, and that the example in
/// `docs/library.md` does what it says.
@Suite(.timeLimit(.minutes(5)))
struct LibraryDocumentationTests {
    /// Folders of `Sources` whose modules a program is linked with.
    static let folders = [
        "Addresses", "CShims", "Caching", "DiskStore", "EventLoop", "HTTP2", "HTTPWire", "PinnedSession",
        "Reachability", "Security", "Serialization", "Session", "TLS", "Transport",
    ]
    static let products = [
        "PinnedSession", "PinproxySecurity", "PinproxySerialization", "PinproxyReachability",
    ]

    private static func module(in folder: String) -> String {
        switch folder {
        case "PinnedSession": folder
        case "CShims": "CPinproxyShims"
        default: "Pinproxy" + folder
        }
    }

    /// Where `swift build` put what it made, beside the tests' own executable.
    static let build = (ProxyProcess.executable as NSString).deletingLastPathComponent

    /// What a compiler needs to import the products.
    static func importing() throws -> [String] {
        let sources = Documentation.repository + "/Sources"
        let systemModules = try FileManager.default.contentsOfDirectory(atPath: sources)
            .map { "\(sources)/\($0)/module.modulemap" }.filter(FileManager.default.fileExists(atPath:))
        let maps = systemModules.sorted() + ["\(build)/CPinproxyShims.build/module.modulemap"]
        return ["-I", "\(build)/Modules", "-Xcc", "-I/usr/include/libxml2"]
            + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
    }

    /// The names of its files.
    private static func sources(in folder: String) throws -> Set<String> {
        let files = try FileManager.default.subpathsOfDirectory(atPath: "\(Documentation.repository)/Sources/\(folder)")
        return Set(files.map { ($0 as NSString).lastPathComponent })
    }

    /// Runs a tool of the compiler that built the tests.
    private func tool(_ bed: TestBed, _ arguments: [String]) async throws -> Run {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        let process = try await bed.start(["/usr/bin/env"] + arguments, environment: ["PATH": path])
        let ending = try await process.ending()
        return Run(
            arguments: arguments, ending: ending, output: await process.output.text, errors: await process.errors.text)
    }

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
            let run = try await tool(
                bed,
                [
                    "swift", "symbolgraph-extract", "-module-name", module, "-target", target, "-output-dir",
                    bed.directory,
                ]
                    + ["-minimum-access-level", "public", "-skip-synthesized-members"] + Self.importing())
            #expect(run.succeeded, "\(run)")
            let file = URL(fileURLWithPath: bed.path("\(module).symbols.json"))
            let graph = try JSONDecoder().decode(Graph.self, from: Data(contentsOf: file))
            #expect(graph.symbols.count > 20)
            let undocumented = graph.symbols.filter { $0.docComment == nil }.map {
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
            let run = try await tool(bed, arguments + Self.importing())
            #expect(run.succeeded, "\(run)")
        }
    }

    @Test func theExampleCompilesAndRuns() async throws {
        try await withLibraryBed { bed in
            let text = try Documentation.blocks("swift main", of: "docs/library.md")
            #expect(text.count == 1)
            let main = try bed.bed.file("main.swift", text[0])
            var arguments = ["swiftc", "-swift-version", "6", "-o", bed.bed.path("fetch"), main]
            arguments += try Self.importing()
            for folder in Self.folders {
                let sources = try Self.sources(in: folder)
                let folder = "\(Self.build)/\(Self.module(in: folder)).build"
                // Objects of files that have gone stay in the folder.
                let objects = try bed.files(in: folder).filter {
                    $0.hasSuffix(".o") && (!$0.hasSuffix(".swift.o") || sources.contains(String($0.dropLast(2))))
                }
                arguments += objects.map { "\(folder)/\($0)" }
            }
            let libraries = [
                "event_core", "ssl", "crypto", "cares", "idn2", "psl", "mnl", "nghttp2", "sqlite3", "z", "brotlidec",
                "zstd",
            ]
            arguments += libraries.map { "-l\($0)" } + (Sanitizer.isOn ? ["-sanitize=address"] : [])
            let compiled = try await tool(bed.bed, arguments)
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
