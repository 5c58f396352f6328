import Foundation
import PinproxyTestAuthority
import Testing

@testable import pinproxy

/// Under `pinproxy exec`, programs that read the system's trust stores trust the proxy's authority. Nothing else
/// changes.
@Suite(
    .sharedBed(ExecRefusalBed.prepare), .enabled(if: IsolationBed.isMountable, "needs mount namespaces"),
    .timeLimit(.minutes(5)))
struct ExecSystemTrustTests {
    let shared: SharedBed
    var bed: TestBed { shared.bed }

    init() throws {
        shared = try sharedBed()
    }

    private func url(_ host: String) -> String { "https://\(host):\(shared.originPort)/large/3" }

    /// Without the variables for certificates.
    private static let bare = [
        "env", "-u", "SSL_CERT_FILE", "-u", "SSL_CERT_DIR", "-u", "CURL_CA_BUNDLE", "-u", "PERL_LWP_SSL_CA_FILE",
    ]

    private func exec(
        options: [String] = [], launcher: [String] = [], environment: [String: String]? = nil, _ command: [String]
    ) async throws -> Run {
        try await bed.run(
            launcher + bed.execArguments(options, command),
            environment: environment ?? ProxyProcess.environment(in: bed))
    }

    struct Program: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// `$URL` is asked for; `$HOST` is its host.
        let call: String
    }

    static let programs = [
        Program(
            testDescription: "the file",
            call: "curl -sS -o /dev/null --capath /dev/null --cacert /etc/ssl/certs/ca-certificates.crt $URL"),
        Program(
            testDescription: "the directory",
            call: """
                python3 -c 'import ssl, sys, urllib.request as r; c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                c.load_verify_locations(capath="/etc/ssl/certs"); r.urlopen(sys.argv[1], context=c).read()' $URL
                """),
        Program(testDescription: "curl's defaults", call: "curl -sS -o /dev/null $URL"),
        Program(
            testDescription: "Python's defaults",
            call: "python3 -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1]).read()' $URL"),
    ]

    @Test(arguments: programs, [[], ["--isolated"], ["--trust"]])
    func rightPinsWorkAndWrongOnesDont(program: Program, options: [String]) async throws {
        guard options != ["--isolated"] || IsolationBed.isAvailable else { return }
        func ask(_ host: String, _ options: [String]) async throws -> Run {
            let script = "URL=\(url(host)); HOST=\(host):\(shared.originPort); \(program.call)"
            return try await exec(options: options, Self.bare + ["sh", "-c", script])
        }
        let right = try await ask("right.test", options)
        #expect(right.succeeded, "\(right)")
        #expect(try await !ask("wrong.test", options).succeeded)
        // The mounts make the difference.
        #expect(try await !ask("right.test", options.filter { $0 != "--trust" } + ["--no-trust"]).succeeded)
    }

    @Test func nothingIsLeftOutside() async throws {
        let list = "find /etc/ssl -printf '%p %i %s %T@\\n' | sort; cut -d' ' -f5 /proc/self/mountinfo"
        let before = try await bed.run(["sh", "-c", list])
        let inside = try await exec(["sh", "-c", list])
        #expect(inside.succeeded && inside.output.contains("/pinproxy-0.pem"), "\(inside)")
        let after = try await bed.run(["sh", "-c", list])
        #expect(before.output == after.output)
        // The original stays in place, and can't be changed.
        let certificates = try await exec([
            "sh", "-c",
            "ls /etc/ssl/certs | wc -l; (echo x > /etc/ssl/certs/ca-certificates.crt) 2>&1; touch /etc/ssl/certs/x",
        ])
        #expect(
            certificates.output.contains("Read-only file system")
                && certificates.errors.contains("Read-only file system"), "\(certificates)")
        let outside = try FileManager.default.contentsOfDirectory(atPath: "/etc/ssl/certs").count
        // The certificate, and its hash.
        #expect(certificates.output.hasPrefix("\(outside + 2)\n"), "\(certificates)")
    }

    @Test(.enabled(if: IsolationBed.isAvailableToUsers, "needs root, to be an ordinary user"))
    func anOrdinaryUser() async throws {
        let environment = try IsolationBed.openToUsers(bed)
        let options = ["--state-directory", bed.path("proxy/state/pinproxy")]
        let script =
            """
            id -u; id -g; grep CapEff /proc/self/status; touch ~/trusting && stat -c %u:%g ~/trusting; curl -sS -o \
            /dev/null \(url("right.test")) && echo trusts
            """
        let run = try await exec(
            options: options, launcher: IsolationBed.asNobody, environment: environment,
            Self.bare + ["sh", "-c", script])
        #expect(run.output == "65534\n65534\nCapEff:\t0000000000000000\n65534:65534\ntrusts", "\(run)")
        #expect(run.ending == .exited(0) && run.errors.isEmpty, "\(run)")
        // What needs another user's rights is left as it is, unless that is asked for.
        let namespace = "readlink /proc/self/ns/user"
        let own = try await bed.run(["sh", "-c", namespace]).output
        try bed.file("bin/sudo", "#!/bin/sh\n\(namespace)\n", mode: 0o755)
        chmod(bed.path("bin"), 0o755)
        for (more, isSame) in [([], true), (["--trust"], false)] {
            let sudo = try await exec(
                options: options + more + ["--explain-refusals=off"], launcher: IsolationBed.asNobody,
                environment: environment, [bed.path("bin/sudo")])
            #expect((sudo.output == own) == isSame, "\(sudo)")
        }
    }

    /// As when certificates change during a long run.
    @Test func aRunWithinOneWhoseFilesWereReplaced() async throws {
        let replace = """
            for file in $(find "$0" -name ca-bundle.pem -o -name 'java-*.p12'); do
            cp "$file" "$file.new"; mv "$file.new" "$file"; done
            exec "$@"
            """
        let inner = bed.execArguments([], Self.bare + ["curl", "-sS", "-o", "/dev/null", url("right.test")])
        let run = try await exec(["sh", "-ec", replace, bed.path("proxy/state/pinproxy/trust")] + inner)
        #expect(run.succeeded && !run.errors.contains("can't be covered"), "\(run)")
    }

    /// The other distributions' places, with their links. The runs see different bundles at one time.
    @Test(
        .enabled(if: getuid() == 0, "needs root, to mount over /etc"),
        arguments: [
            // Fedora
            """
            rm -r /etc/ssl/certs; mkdir -p /etc/pki/ca-trust/extracted/pem /etc/pki/tls/certs; ln -s ../pki/tls/certs \
            /etc/ssl/certs
            cp $1 /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem; mkdir -p /etc/pki/ca-trust/source/anchors
            ln -s /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/pki/tls/certs/ca-bundle.crt
            ln -s certs/ca-bundle.crt /etc/pki/tls/cert.pem
            ln -s /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/pki/tls/certs/ca-certificates.crt
            files='/etc/pki/tls/certs/ca-bundle.crt /etc/pki/tls/cert.pem /etc/ssl/certs/ca-certificates.crt'
            """,
            // Alpine
            """
            ln -s certs/ca-certificates.crt /etc/ssl/cert.pem
            files='/etc/ssl/cert.pem /etc/ssl/certs/ca-certificates.crt'
            """,
            // openSUSE
            """
            rm -r /etc/ssl/certs; mkdir -p /etc/var/pem /etc/var/openssl /etc/pki/trust/anchors
            cp $1 /etc/ssl/ca-bundle.pem; ln -s ../var/pem /etc/ssl/certs
            cp $1 /etc/var/pem/One.pem; files=/etc/ssl/ca-bundle.pem
            """,
        ])
    func otherDistributions(arrangement: String) async throws {
        let script = """
            set -e; cp -a /etc $2; mount --bind $2 /etc; cp /etc/ssl/certs/ca-certificates.crt $2.crt; set -- $2.crt \
            "$@"
            \(arrangement)
            shift 3; "$@" sh -c 'for f; do curl -sS -o /dev/null --capath /dev/null --cacert $f \(url("right.test")) \
            || exit 1; done
            for d in /etc/pki/ca-trust/source/anchors /etc/pki/trust/anchors; do [ ! -d $d ] || \
            cmp /etc/ssl/certs/pinproxy-0.pem $d/pinproxy-0.pem || exit 1; done
            ls /etc/ssl/certs/pinproxy-0.pem' sh $files
            """
        let run = try await bed.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", "-", bed.path("etc-\(UUID())")]
                + bed.execArguments([], Self.bare.map { $0 }), environment: ProxyProcess.environment(in: bed))
        #expect(run.succeeded && run.output == "/etc/ssl/certs/pinproxy-0.pem", "\(run)")
    }

    /// ssh takes included settings from root or its user, and in a user namespace root appears as nobody.
    @Test(
        .enabled(
            if: IsolationBed.isAvailableToUsers && FileManager.default.fileExists(atPath: "/usr/bin/ssh"),
            "needs root, to be an ordinary user, and ssh"))
    func sshReadsItsSettings() async throws {
        let environment = try IsolationBed.openToUsers(bed)
        let script = """
            set -e; cp -a /etc $1; mount --bind $1 /etc; mkdir -p /etc/ssh/ssh_config.d; echo 'Include \
            /etc/ssh/ssh_config.d/*.conf' > /etc/ssh/ssh_config
            printf 'Host alias.test\\n  HostName meant.test\\n' > /etc/ssh/ssh_config.d/50-test.conf; shift; exec "$@"
            """
        let run = try await bed.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", bed.path("etc-\(UUID())")] + IsolationBed.asNobody
                + bed.execArguments(
                    ["--state-directory", bed.path("proxy/state/pinproxy"), "--explain-refusals=off"],
                    ["ssh", "-G", "alias.test"]),
            environment: environment)
        #expect(run.succeeded && run.output.contains("hostname meant.test"), "\(run)")
    }

    /// Subversion takes its proxy from files alone: the system's, which keeps what it has, and the user's.
    @Test(.enabled(if: IsolationBed.isAvailableToUsers)) func subversionsSettings() async throws {
        let environment = try IsolationBed.openToUsers(bed)
        let script = """
            set -e; cp -a /etc $1; mount --bind $1 /etc; mkdir -p /etc/subversion
            printf '[global]\\nhttp-timeout = 7' > /etc/subversion/servers; shift; exec "$@"
            """
        func show(_ options: [String]) async throws -> String {
            let run = try await bed.run(
                ["unshare", "--mount", "sh", "-c", script, "sh", bed.path("etc-\(UUID())")] + IsolationBed.asNobody
                    + bed.execArguments(
                        ["--state-directory", bed.path("proxy/state/pinproxy"), "--explain-refusals=off"] + options,
                        ["cat", "/etc/subversion/servers"]), environment: environment)
            #expect(run.succeeded, "\(run)")
            return run.output
        }
        let given = try await show([])
        #expect(
            given.hasPrefix(
                "[global]\nhttp-timeout = 7\n[global]\nhttp-proxy-host = 127.0.0.1\nhttp-proxy-port = "
                    + "\(shared.proxy.port)\n"), "\(given)")
        #expect(try await show(["--no-trust"]) == "[global]\nhttp-timeout = 7")
    }

    private static let hasSubversion = ["/usr/bin/svn", "/etc/subversion/servers"].allSatisfy {
        FileManager.default.fileExists(atPath: $0)
    }

    @Test(.enabled(if: hasSubversion)) func subversionTakesTheProxy() async throws {
        func ask(_ host: String, _ settings: String) async throws -> Run {
            let home = bed.path("svn-\(UUID())")
            try FileManager.default.createDirectory(
                atPath: home + "/.subversion", withIntermediateDirectories: true)
            try settings.write(toFile: home + "/.subversion/servers", atomically: true, encoding: .utf8)
            return try await exec(
                environment: ProxyProcess.environment(in: bed).merging(["HOME": home]) { $1 },
                ["svn", "info", "--non-interactive", url(host)])
        }
        // It has read an answer from a server that is not a Subversion server.
        let right = try await ask("right.test", "")
        #expect(right.errors.contains("does not support the HTTP/DAV"), "\(right)")
        let wrong = try await ask("wrong.test", "")
        #expect(
            !wrong.errors.contains("HTTP/DAV") && wrong.told.count == 1
                && wrong.told[0].contains("Certificate pinning failure"), "\(wrong)")
        // The user's setting applies.
        let elsewhere = try await ask("right.test", "[global]\nhttp-proxy-host = none.test\nhttp-proxy-port = 1\n")
        #expect(!elsewhere.errors.contains("HTTP/DAV"), "\(elsewhere)")
    }

    // MARK: Where it can't be had

    /// Without namespaces a run gets only the variables, and says so once. A run that requires the stores (`--trust`)
    /// is refused.
    @Test(.enabled(if: getuid() == 0, IsolationBed.whyRoot)) func namespacesAreForbidden() async throws {
        try await withTestBed { bed in
            _ = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"]])
            let forbid =
                """
                echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_mnt_namespaces; exec setpriv \
                --bounding-set=-all --inh-caps=-all \"$@\"
                """
            func run(_ options: [String]) async throws -> Run {
                try await bed.run(
                    ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"]
                        + bed.execArguments(options + ["--explain-refusals=off"], ["echo", "was run"]),
                    environment: ProxyProcess.environment(in: bed))
            }
            let first = try await run([])
            #expect(first.succeeded && first.output == "was run", "\(first)")
            #expect(
                first.told.count == 1
                    && first.told[0].contains("don't trust the proxy's authority: the kernel makes no mount namespace"),
                "\(first)")
            let second = try await run([])
            #expect(second.succeeded && second.errors.isEmpty, "\(second)")
            let asked = try await run(["--trust"])
            #expect(asked.ending == .exited(126) && asked.output.isEmpty, "\(asked)")
            #expect(asked.told.first?.hasPrefix("pinproxy: echo was not run: the kernel makes no") == true, "\(asked)")
            #expect(try await run(["--no-trust"]).errors.isEmpty)
        }
    }

    @Test func itIsSaidOnce() async throws {
        try await withTestBed { bed in
            _ = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"]])
            try FileManager.default.removeItem(atPath: bed.path("proxy/state/pinproxy/\(SaidOnce.name)"))
            let off = ["--explain-refusals=off"]
            #expect(try await bed.exec(options: off + ["--no-trust"], "true").errors.isEmpty)
            #expect(try await bed.exec(options: off, "true").errors == CommandTrust.given)
            for _ in 0..<2 { #expect(try await bed.exec(options: off, "true").errors.isEmpty) }
        }
    }

    /// Python's certifi, which yt-dlp and others use instead of the system's store.
    @Test func whatProgramsBringAlong() async throws {
        let file = "tool/lib/python3.99/site-packages/certifi/cacert.pem"
        try bed.file(file, "nothing\n", mode: 0o644)
        try bed.file(
            "tool/bin/ask",
            "#!/bin/sh\ncurl -sS -o /dev/null --capath /dev/null --cacert \(bed.path(file)) \(url("right.test"))\n",
            mode: 0o755)
        let run = try await exec([bed.path("tool/bin/ask")])
        #expect(run.succeeded, "\(run)")
        #expect(try bed.contents(file) == "nothing\n")
    }

    // MARK: Messages

    /// The command's output may leave the terminal's cursor in the middle of a line.
    @Test func aLineOfItsOwn() async throws {
        let terminal = """
            import fcntl, os, pty, struct, sys, termios
            process, descriptor = pty.fork()
            if process == 0:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
                os.execvp(sys.argv[1], sys.argv[1:])
            output = b""
            try:
                while chunk := os.read(descriptor, 4096): output += chunk
            except OSError: pass
            os.waitpid(process, 0)
            sys.stdout.write(repr(output.decode()))
            """
        func told(_ command: String) async throws -> String {
            let script = try bed.file("terminal.py", terminal)
            return try await bed.run(
                [PythonPeer.python, script] + bed.execArguments([], ["sh", "-c", command]),
                environment: ProxyProcess.environment(in: bed)
            ).output
        }
        let blanks = String(repeating: " ", count: 39)
        #expect(try await told("printf unfinished").hasPrefix("'unfinished\(blanks)\\rpinproxy: sh sent nothing"))
        #expect(try await told("echo finished").hasPrefix("'finished\\r\\n\(blanks)\\rpinproxy: sh sent nothing"))
        // In a file.
        let file = bed.path("told")
        let run = try await bed.run(
            ["sh", "-c", "\"$@\" > \(file) 2>&1", "sh"] + bed.execArguments([], ["printf", "unfinished"]),
            environment: ProxyProcess.environment(in: bed))
        #expect(run.succeeded)
        #expect(try bed.contents("told").hasPrefix("unfinished\npinproxy: printf sent nothing"))
    }
}
