import Foundation
import Testing

/// pinproxy(1), as made by `make manual`, and the shells' completions.
@Suite(.timeLimit(.minutes(5)))
struct ManualTests {
    @Test func thePageOfTheProgramNamesEveryCommand() async throws {
        try await withTestBed { bed in
            let run = try await bed.run([
                "bash", "-c",
                """
                set -o pipefail; '\(ProxyProcess.executable)' --experimental-dump-help | python3 -B \
                '\(Documentation.repository)/docs/commands.py' \(bed.path("pinproxy.1"))
                """,
            ])
            #expect(run.succeeded, "\(run)")
            let page = try bed.contents("pinproxy.1")
            let help = try await bed.run([ProxyProcess.executable, "--help"])
            // "  run                     Run the proxy in the foreground."
            let commands = help.output.components(separatedBy: "SUBCOMMANDS:\n").last?.split(separator: "\n").compactMap
            { line in
                line.hasPrefix("  ") && !line.hasPrefix("   ") ? line.split(separator: " ").first.map(String.init) : nil
            }
            #expect((commands ?? []).count >= 13, "\(help)")
            for command in commands ?? [] where command != "See" {
                #expect(page.contains(".It \(command)\n"), "\(command)")
            }
            for part in ["COMMANDS", "OPTIONS", "EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES"] {
                #expect(page.contains(".Sh \(part)\n"))
            }
            #expect(page.contains(".It ca install\n") && page.contains(".It 78\n") && !page.contains("exec-inside"))
            let shown = try await bed.run(["groff", "-mandoc", "-Tutf8", "-ww", bed.path("pinproxy.1")])
            #expect(shown.succeeded && shown.errors.isEmpty, "\(shown)")
        }
    }
}
