import Foundation
import Testing

/// What shells complete with the scripts that the package installs.
@Suite(.timeLimit(.minutes(5)))
struct CompletionTests {
    /// The end of a command line, and some of its completions.
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
        ("pinproxy cache ", ["summary", "show", "purge"]),
    ]

    /// Completions for which the script asks the program. fish only does that at a terminal.
    private static let hosts: [(line: String, completions: [String])] = [
        ("pinproxy explain --config configured.yaml a", ["api.test", "auth.test:8443"]),
        ("pinproxy pin --config configured.yaml api", ["api.test"]),
    ]

    /// The scripts ask the program itself for hosts.
    private static func environment(_ bed: TestBed) -> [String: String] {
        let folder = (ProxyProcess.executable as NSString).deletingLastPathComponent
        return ProxyProcess.environment(in: bed).merging(["PATH": "\(folder):/usr/bin:/bin"]) { $1 }
    }

    private func place(_ bed: TestBed, _ shell: String) async throws {
        try bed.file("place/configured.yaml", "pins: pins.yaml\n")
        try bed.file(
            "place/pins.yaml",
            "hosts: [{match: api.test}, {match: '*.api.test'}, {match: 'auth.test:8443'}, {match: other.test}]\n")
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
            for (line, completions) in Self.lines + Self.hosts {
                let run = try await bed.run(
                    [
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
                    ], environment: Self.environment(bed))
                let words = run.output.split(separator: "\n").map {
                    $0.trimmingCharacters(in: CharacterSet(charactersIn: " /"))
                }
                #expect(run.succeeded && Set(completions).isSubset(of: words), "\(line): \(run)")
            }
        }
    }

    @Test func fishCompletesFilesAndWords() async throws {
        try await withTestBed { bed in
            try await place(bed, "fish")
            for (line, completions) in Self.lines {
                let run = try await bed.run(
                    [
                        "fish", "--no-config", "-c",
                        "cd '\(bed.path("place"))'; source ../completions; complete -C '\(line)'",
                    ], environment: Self.environment(bed))
                let words = run.output.split(separator: "\n").map {
                    $0.prefix { $0 != "\t" }.trimmingCharacters(in: CharacterSet(charactersIn: " /"))
                }
                #expect(run.succeeded && Set(completions).isSubset(of: words), "\(line): \(run)")
            }
        }
    }

    /// zsh only completes at a terminal, which zpty makes.
    @Test func zshCompletesFilesAndWords() async throws {
        try await withTestBed { bed in
            try await place(bed, "zsh")
            try bed.file("functions/_pinproxy", try bed.contents("completions"))
            for (line, completions) in Self.lines + Self.hosts {
                let run = try await bed.run(
                    ["zsh", "-f", PythonPeer.path("completions.zsh"), bed.path("functions"), bed.path("place"), line],
                    environment: Self.environment(bed))
                // A single completion is inserted into the line.
                let words = run.output.split(whereSeparator: \.isWhitespace).map {
                    $0.hasSuffix("/") ? $0.dropLast() : $0
                }
                #expect(run.succeeded && Set(completions).isSubset(of: words.map(String.init)), "\(line): \(run)")
            }
        }
    }
}
