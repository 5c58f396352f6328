import Foundation
import Testing

/// The hook that update-ca-certificates runs, as root, in a mount namespace with the service's user and directory.
@Suite(.timeLimit(.minutes(2)), .enabled(if: NetworkBed.isAvailable, "needs root, to mount"))
struct PackageHookTests {
    private static let hook = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("debian/update.d/pinproxy").path

    /// - Parameters:
    ///   - user: whether the service's user exists.
    ///   - prepare: in the service's directory, before the hook.
    ///   - look: afterwards.
    private func run(_ bed: TestBed, user: Bool = true, prepare: String = "true", look: String) async throws -> Run {
        // Records the program's arguments, and executes it.
        try bed.file(
            "bin/pinproxy",
            """
            #!/bin/bash
            { echo "user $(id -u) groups $(id -G)"
              echo "files $(readlink /proc/$$/fd/* | sort -u | tr '\\n' ' ')"
              echo "environment $(tr '\\0' ' ' < /proc/$$/environ)"
              grep -E '^(Cap|NoNewPrivs)' /proc/$$/status
              [ "$(ps -o sid= -p $$)" -eq $$ ] && echo session; pwd; } > /var/lib/pinproxy/seen
            exec '\(ProxyProcess.executable)' "$@"
            """, mode: 0o755)
        let account = "pinproxy:x:4711:4711::/var/lib/pinproxy:/usr/sbin/nologin"
        let script = """
            set -e
            chmod 755 "$BED" "$BED/bin"
            mkdir "$BED/etc" && cp -a /etc/. "$BED/etc" && mount --bind "$BED/etc" /etc
            mount -t tmpfs -o mode=755 none /var/lib
            mkdir -p /etc/pinproxy /var/lib/pinproxy /var/lib/victim
            printf 'pins: null\\n' > /etc/pinproxy/pinproxy.yaml
            chown 4711:4711 /var/lib/pinproxy
            '\(ProxyProcess.executable)' ca create --config /etc/pinproxy/pinproxy.yaml > "$BED/created"
            \(user ? "echo '\(account)' >> /etc/passwd; echo 'pinproxy:x:4711:' >> /etc/group" : "")
            \(prepare)
            SECRET=roots PATH="$BED/bin:$PATH" '\(Self.hook)' 3< /etc/shadow 14< /etc/shadow
            \(look)
            """
        return try await bed.run(
            ["unshare", "--mount", "/bin/bash", "-c", script], environment: ["BED": bed.directory])
    }

    @Test func itRunsAsTheServiceWithNothingOfRoots() async throws {
        try await withTestBed { bed in
            let run = try await run(
                bed, look: "cat /var/lib/pinproxy/seen; stat -c '%u %n' /var/lib/pinproxy/trust/*/ca-bundle.pem")
            #expect(run.succeeded && run.errors == "", "\(run)")
            let lines = run.output.split(separator: "\n").map(String.init)
            #expect(lines.first == "user 4711 groups 4711", "\(run)")
            #expect(lines.contains("session") && lines.contains("/"), "\(run)")
            // In addition to the script's.
            let files = lines.first { $0.hasPrefix("files") }?.split(separator: " ").dropFirst().filter {
                !$0.hasPrefix("pipe:") && !$0.hasPrefix("/var/lib/pinproxy/seen") && !$0.hasSuffix("/bin/pinproxy")
            }
            #expect(files == ["/dev/null"], "\(run)")
            #expect(lines.contains { $0.hasPrefix("environment PATH=") && !$0.contains("SECRET") }, "\(run)")
            for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                #expect(lines.contains("\(name):\t0000000000000000"), "\(run)")
            }
            #expect(lines.contains("NoNewPrivs:\t1"))
            #expect(lines.last?.hasPrefix("4711 /var/lib/pinproxy/trust/") == true, "\(run)")
        }
    }

    /// A compromised service has prepared its directory.
    @Test func aServiceLeadsItNowhere() async throws {
        try await withTestBed { bed in
            let run = try await run(
                bed,
                prepare: """
                    ln -s /var/lib/victim /var/lib/pinproxy/trust; chown -h 4711:4711 /var/lib/pinproxy/trust
                    echo 'touch /var/lib/victim/led' >> /var/lib/pinproxy/authority.pem
                    """, look: "ls -A /var/lib/victim")
            #expect(run.succeeded && run.output == "" && run.errors == "", "\(run)")
        }
    }

    @Test func withoutTheUserItIsSilent() async throws {
        try await withTestBed { bed in
            let run = try await run(bed, user: false, look: "ls /var/lib/pinproxy")
            #expect(run.succeeded && run.output == "authority.key\nauthority.pem" && run.errors == "", "\(run)")
        }
    }
}
