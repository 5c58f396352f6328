import Foundation
import Testing

/// A package that depends on the library's products, beside swift-nio, AsyncHTTPClient and swift-configuration
/// (`Tests/Consumer`).
@Suite(
    .timeLimit(.minutes(30)),
    .enabled("dependencies are fetched outside of it") {
        ProcessInfo.processInfo.environment["PINPROXY_TEST_OFFLINE"] == nil
    })
struct ConsumerTests {
    /// Shared objects that a program needs at its start, as docs/library.md names them.
    static let linked = [
        "libbrotlidec.so.1", "libcares.so.2", "libcrypto.so.3", "libevent_core-2.1.so.7", "libidn2.so.0", "libmnl.so.0",
        "libnghttp2.so.14", "libpsl.so.5", "libsqlite3.so.0", "libssl.so.3", "libz.so.1", "libzstd.so.1",
    ]
    /// Those of every program in C++ and Swift.
    static let system = ["libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2"]

    private let bed: TestBed

    init() throws { bed = try TestBed() }

    /// Runs the package manager that built the tests, with this machine's settings of git.
    private func swift(_ arguments: [String], in package: String) async throws -> Run {
        let inherited = ["PATH", "HOME"].compactMap { name in
            ProcessInfo.processInfo.environment[name].map { (name, $0) }
        }
        let environment = Dictionary(inherited) { $1 }.merging(["CONSUMER_PINPROXY": Documentation.repository]) { $1 }
        let command = ["swift"] + arguments + ["--package-path", bed.path(package)]
        let process = try await bed.start(command, environment: environment)
        // Two dozen packages are fetched from where they are mirrored.
        let ending = try await process.ending(within: .seconds(600))
        return Run(
            arguments: command, ending: ending, output: await process.output.text, errors: await process.errors.text)
    }

    /// Gives `body` a copy of the package, in the bed's `consumer`.
    private func withConsumer(_ body: () async throws -> Void) async throws {
        do {
            try FileManager.default.copyItem(
                atPath: Documentation.repository + "/Tests/Consumer", toPath: bed.path("consumer"))
            for leftover in [".build", "Package.resolved"] {
                try? FileManager.default.removeItem(atPath: bed.path("consumer/\(leftover)"))
            }
            try await body()
        } catch {
            await bed.end()
            throw error
        }
        await bed.end()
    }

    private func fetched() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: bed.path("consumer/.build/checkouts"))
    }

    @Test func itsModulesHaveNamesThatNobodyElseHas() async throws {
        try await withConsumer {
            // Loads the graph and plans every target, without building any.
            let plan = ["build", "--print-manifest-job-graph"]
            let planned = try await swift(plan, in: "consumer")
            #expect(planned.succeeded && planned.output.contains("PinnedSessionService"), "\(planned)")
            #expect(try !fetched().contains("swift-argument-parser"))

            // With two modules of one name this would fail.
            try bed.file("other/Sources/PinproxyTLS/Other.swift", "")
            try bed.file(
                "other/Package.swift",
                """
                // swift-tools-version: 6.2
                import PackageDescription
                let package = Package(
                    name: "other", products: [.library(name: "Other", targets: ["PinproxyTLS"])],
                    targets: [.target(name: "PinproxyTLS")])
                """)
            let manifest = try bed.contents("consumer/Package.swift")
            try bed.file(
                "consumer/Package.swift",
                manifest + "\npackage.dependencies.append(.package(path: \"\(bed.path("other"))\"))\n")
            let clashing = try await swift(plan, in: "consumer")
            #expect(!clashing.succeeded && clashing.errors.contains("'PinproxyTLS"), "\(clashing)")
        }
    }

    @Test func withoutTraitsNothingElseIsFetched() async throws {
        try await withConsumer {
            try FileManager.default.removeItem(atPath: bed.path("consumer/Sources"))
            try bed.file("consumer/Sources/Consumer/main.swift", "import PinnedSession")
            try bed.file(
                "consumer/Package.swift",
                """
                // swift-tools-version: 6.2
                import PackageDescription
                let package = Package(
                    name: "consumer",
                    dependencies: [.package(name: "pinproxy", path: "\(Documentation.repository)", traits: [])],
                    targets: [
                        .executableTarget(
                            name: "Consumer", dependencies: [.product(name: "PinnedSession", package: "pinproxy")])
                    ])
                """)
            let planned = try await swift(["build", "--print-manifest-job-graph"], in: "consumer")
            #expect(planned.succeeded && planned.output.contains("PinnedSession"), "\(planned)")
            #expect(try fetched() == [])
        }
    }

    /// In `make test-library` alone, which builds the program: everything is compiled again for it.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["PINPROXY_TEST_LIBRARY"] != nil))
    func itsProgramRunsAndNeedsNoMoreThanIsSaid() async throws {
        try await withConsumer {
            let program = try #require(ProcessInfo.processInfo.environment["PINPROXY_TEST_LIBRARY"])
            let run = try await bed.run([program])
            #expect(run.succeeded, "\(run)")
            for line in [
                "100 answers", "the other client: 200", "libxml2 before: false", "libxml2 after: true, true",
                "101 counted",
            ] {
                #expect(run.output.contains(line), "\(run)")
            }

            let dynamic = try await bed.run(["readelf", "-d", program])
            func values(_ tag: String) -> [String] {
                dynamic.output.split(separator: "\n").filter { $0.contains("(\(tag))") }
                    .compactMap { $0.split(separator: "[").last?.dropLast().description }
            }
            let needed = values("NEEDED")
            // Where the program finds Swift's own shared objects.
            let runtime = try #require(values("RUNPATH").first?.split(separator: ":").first)
            let toolchain = Set(try FileManager.default.contentsOfDirectory(atPath: String(runtime)))
            let own = needed.filter { !toolchain.contains($0) && !Self.system.contains($0) }
            #expect(own.sorted() == Self.linked, "\(needed)")
        }
    }
}
