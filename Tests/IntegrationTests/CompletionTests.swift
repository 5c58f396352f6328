import Foundation
import Testing

/// What the shells complete by the scripts that the package installs.
@Suite(.timeLimit(.minutes(5)))
struct CompletionTests {
    /// The end of a command line, and what it may be completed to, among other words.
    private static let lines: [(line: String, completions: [String])] = [
        ("pinproxy check --config conf", ["configured.yaml"]),
        ("pinproxy pin --from conf", ["configured.yaml"]),
        ("pinproxy explain --chain conf", ["configured.yaml"]),
        ("pinproxy explain --response conf", ["configured.yaml"]),
        ("pinproxy ca show --state-directory stat", ["state"]),
        ("pinproxy env --shell ", ["sh", "fish", "csh", "powershell"]),
        ("pinproxy exec --explain-refusals ", ["end", "live", "off"]),
        ("pinproxy explain --method P", ["POST", "PUT", "PATCH"]),
        ("pinproxy doctor gi", ["git", "git-lfs"]),
        ("pinproxy re", ["reload"]),
        ("pinproxy tasks s", ["show", "suspend"]),
    ]

    private func place(_ bed: TestBed, _ shell: String) async throws {
        try bed.file("place/configured.yaml", "")
        try bed.file("place/state/authority.pem", "")
        let script = try await bed.run([ProxyProcess.executable, "--generate-completion-script", shell])
        #expect(script.succeeded, "\(script)")
        // As the Makefile installs it for bash, without the first line, which names an interpreter.
        let text = shell == "bash" ? script.output.split(separator: "\n", maxSplits: 1)[1] : script.output[...]
        try bed.file("completions", String(text))
    }

    @Test func bashCompletesFilesAndWords() async throws {
        try await withTestBed { bed in
            try await place(bed, "bash")
            for (line, completions) in Self.lines {
                let run = try await bed.run([
                    "bash", "-c",
                    """
                    cd '\(bed.path("place"))' && source ../completions || exit
                    COMP_LINE='\(line)'; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMP_KEY=9
                    read -ra COMP_WORDS <<< "$COMP_LINE"
                    [[ $COMP_LINE != *' ' ]] || COMP_WORDS+=('')
                    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
                    complete -p pinproxy > /dev/null || exit
                    _pinproxy pinproxy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
                    printf '%s\\n' "${COMPREPLY[@]}"
                    """,
                ])
                let words = run.output.split(separator: "\n").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " /")) }
                #expect(run.succeeded && Set(completions).isSubset(of: words), "\(line): \(run)")
            }
        }
    }

    @Test func fishCompletesFilesAndWords() async throws {
        try await withTestBed { bed in
            try await place(bed, "fish")
            for (line, completions) in Self.lines {
                let run = try await bed.run([
                    "fish", "--no-config", "-c", "cd '\(bed.path("place"))'; source ../completions; complete -C '\(line)'",
                ])
                let words = run.output.split(separator: "\n").map {
                    $0.prefix { $0 != "\t" }.trimmingCharacters(in: CharacterSet(charactersIn: " /"))
                }
                #expect(run.succeeded && Set(completions).isSubset(of: words), "\(line): \(run)")
            }
        }
    }

    /// zsh completes at a terminal alone: what the script has it complete is looked at.
    @Test func zshIsToldOfFilesAndWords() async throws {
        try await withTestBed { bed in
            try await place(bed, "zsh")
            let script = try bed.contents("completions")
            for (option, action) in [
                ("--config", "_files"), ("--from", "_files"), ("--chain", "_files"), ("--response", "_files"), ("--state-directory", "_files -/"),
                ("--shell", "___shell"), ("--explain-refusals", "___explain_refusals"), ("--method", "___method"),
            ] {
                let specifications = script.split(separator: "\n").filter { $0.contains("'\(option)[") || $0.contains(" \(option)'") }
                #expect(!specifications.isEmpty && specifications.allSatisfy { $0.contains(action) }, "\(option): \(specifications)")
            }
        }
    }
}
