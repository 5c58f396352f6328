import Foundation
import PinproxyTestAuthority
import Testing

/// Programs that read no common variable trust the proxy's authority under `pinproxy exec`, and are held to the pins.
/// Each where this machine has it.
@Suite(.sharedBed(ExecRefusalBed.prepare), .timeLimit(.minutes(5)))
struct ExecTrustTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private static let java = """
        import java.net.*;
        public class Fetch {
            public static void main(String[] arguments) throws Exception {
                var connection = (HttpURLConnection) new URL(arguments[0]).openConnection();
                System.out.println(connection.getResponseCode());
            }
        }
        """

    struct Program: Sendable, CustomTestStringConvertible {
        let path: String
        let arguments: [String]
        var testDescription: String { path }
    }

    static let programs = [
        Program(path: "/usr/bin/wget", arguments: ["-qO/dev/null", "--tries=1"]),
        Program(path: "/usr/bin/curl", arguments: ["-sSo/dev/null"]),
        Program(
            path: "/usr/bin/perl",
            arguments: [
                "-MLWP::UserAgent", "-e",
                "$a = LWP::UserAgent->new; $a->env_proxy; exit !$a->get($ARGV[0])->is_success",
            ]),
        Program(path: "/usr/lib/apt/apt-helper", arguments: ["-oAPT::Sandbox::User=root", "download-file"]),
        Program(path: "/usr/bin/java", arguments: ["Fetch.java"]),
        Program(
            path: "/usr/bin/php",
            arguments: [
                "-r",
                """
                $c = curl_init($argv[1]); curl_setopt($c, CURLOPT_RETURNTRANSFER, 1); exit(curl_exec($c) === false ? 1 \
                : 0);
                """,
            ]),
        Program(path: "/usr/bin/ruby", arguments: ["-ropen-uri", "-e", "URI.open(ARGV[0]).read"]),
    ]

    @Test(arguments: programs) func rightPinsWorkAndWrongOnesDont(program: Program) async throws {
        guard FileManager.default.isExecutableFile(atPath: program.path) else { return }
        if program.path.hasSuffix("perl"),
            try await !shared.bed.run(["perl", "-MLWP::Protocol::https", "-e1"]).succeeded
        {
            return
        }
        if program.path.hasSuffix("/java") { try shared.bed.file("Fetch.java", Self.java) }
        let last = program.path.hasSuffix("apt-helper") ? [shared.bed.path("fetched-\(UUID())")] : []
        func fetch(_ host: String) async throws -> Run {
            let url = "https://\(host):\(shared.originPort)/large/3"
            return try await shared.bed.run(
                shared.bed.execArguments([], [program.path] + program.arguments + [url] + last),
                environment: ProxyProcess.environment(in: shared.bed))
        }
        let right = try await fetch("right.test")
        #expect(right.succeeded, "\(right)")
        let wrong = try await fetch("wrong.test")
        #expect(!wrong.succeeded, "\(wrong)")
    }

    /// A JVM has its own certificate store, and so do browsers.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/certutil")))
    func browsersStores() async throws {
        let bed = shared.bed
        let profile = bed.path(".mozilla/firefox/abc.default")
        try FileManager.default.createDirectory(atPath: profile, withIntermediateDirectories: true)
        #expect(try await bed.run(["certutil", "-N", "--empty-password", "-d", "sql:\(profile)"]).succeeded)
        func ca(_ arguments: String...) async throws -> Run {
            try await bed.run(
                [ProxyProcess.executable, "ca"] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
        }
        func isThere(_ directory: String) async throws -> Bool {
            try await bed.run(["certutil", "-L", "-d", "sql:\(directory)"]).output.contains("pinproxy ")
        }
        for _ in 0..<2 { #expect(try await ca("install", "--nss").succeeded) }
        let databases = [bed.path(".pki/nssdb"), profile]
        for directory in databases { #expect(try await isThere(directory)) }
        let removed = try await ca("remove", "--nss")
        #expect(removed.succeeded && databases.allSatisfy(removed.output.contains), "\(removed)")
        for directory in databases { #expect(try await !isThere(directory)) }
        #expect(try await ca("remove", "--nss", "--all").output == "not installed")
    }

    @Test(.enabled(if: JVMCopy.isAvailable, "needs a JDK")) func aJVMsStore() async throws {
        let bed = shared.bed
        let jvm = try await JVMCopy(bed, trusting: shared.proxy.authority)
        func ca(_ arguments: String...) async throws -> Run {
            try await bed.run(
                [ProxyProcess.executable, "ca"] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
                environment: jvm.environment)
        }
        let first = try await ca("install", "--java")
        #expect(first.output.hasPrefix("installed: "), "\(first)")
        #expect(try await ca("install", "--java").output.hasPrefix("already installed: "))
        #expect(try await ca("remove", "--java").output.contains("pinproxy-"))
        #expect(try await ca("remove", "--java").output == "not installed")
    }
}
