import Foundation
import Testing

/// A rotation of the local authority, as clients see it that trust the old one, the new one, or both.
@Suite(.timeLimit(.minutes(5)))
struct AuthorityRotationTests {
    private struct Machine {
        let shared: SharedBed
        let admin: AdminClient
        var bed: TestBed { shared.bed }
        var state: String { (shared.proxy.authority as NSString).deletingLastPathComponent }

        init(_ bed: TestBed) async throws {
            shared = try await OriginBed.prepare(bed, sections: AdminClient.section)
            admin = try await AdminClient(shared.proxy)
            try bed.file("old.pem", bed.contents("proxy/state/pinproxy/authority.pem"))
        }

        func pinproxy(_ arguments: String...) async throws -> Run {
            try await bed.run(
                [ProxyProcess.executable] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
        }

        func rotate(_ step: String...) async throws {
            let run = try await bed.run(
                [ProxyProcess.executable, "ca", "rotate"] + step + ["--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(run.succeeded, "\(run)")
            #expect(try await shared.proxy.reload().name == "config.reload")
        }

        /// The trust files that work for a client.
        func accepted(_ files: [String]) async throws -> [String] {
            var found: [String] = []
            for file in files {
                let curl = try await bed.run([
                    "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--proxy", shared.proxy.url, "--cacert",
                    file,
                    shared.url + "/echo",
                ])
                let openssl = try await bed.run([
                    "openssl", "s_client", "-proxy", "127.0.0.1:\(shared.proxy.port)", "-connect", shared.authority,
                    "-servername",
                    OriginBed.name, "-verify_return_error", "-x509_strict", "-no-CApath", "-no-CAstore", "-CAfile",
                    file,
                ])
                #expect(
                    openssl.output.contains("Verify return code: 0") == (curl.output == "200"),
                    "\(file): \(openssl) \(curl)")
                if curl.output == "200" { found.append((file as NSString).lastPathComponent) }
            }
            return found
        }

        /// The value that `pinproxy env` gives to a variable.
        func variable(_ name: String) async throws -> String {
            // The proxy listens on a port that the system chose, which no client is sent to.
            let file = try bed.file("env.yaml", "proxy: {listen: 127.0.0.1:7467}\npins: null\n")
            let run = try await bed.run(
                [ProxyProcess.executable, "env", "--config", file], environment: ProxyProcess.environment(in: bed))
            #expect(run.succeeded, "\(run)")
            let line = run.output.split(separator: "\n").first { $0.contains("\(name)=") } ?? ""
            return String(line.split(separator: "=").last ?? "").replacing("'", with: "")
        }

        /// The bundle that `pinproxy env` names.
        func bundle() async throws -> String { try await variable("SSL_CERT_FILE") }
    }

    @Test func aClientThatTrustsBothIsNeverRefused() async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed)
            let early = try await machine.bundle()
            try await machine.rotate()
            let old = bed.path("old.pem")
            let new = try bed.file("new.pem", bed.contents("proxy/state/pinproxy/authority.next.pem"))
            let both = try bed.file("both.pem", bed.contents("old.pem") + bed.contents("new.pem"))
            let shown = try bed.file("shown.pem", try await machine.pinproxy("ca", "show", "--pem").output)
            let served = try bed.file("served.pem", try await machine.admin.ask("GET", "/ca.pem").body)
            let all = [old, new, both, shown, served, early, try await machine.bundle()]
            let bundles = ["both.pem", "shown.pem", "served.pem", "ca-bundle.pem", "ca-bundle.pem"]
            #expect(try await machine.accepted(all) == ["old.pem"] + bundles)
            let changed = try await machine.shared.proxy.events.first("authority.changed")
            #expect(changed["signs"] == changed["before"] && changed["next"]?.isEmpty == false, "\(changed)")
            #expect(try await machine.pinproxy("ca", "show").output.contains("next: CN=pinproxy on "))
            #expect(try await machine.variable("NODE_EXTRA_CA_CERTS").hasSuffix("/authorities.pem"))

            try await machine.rotate("--activate")
            #expect(try await machine.accepted(all) == ["new.pem"] + bundles)
            #expect(try await machine.accepted([try await machine.bundle()]).count == 1)
            #expect(try await machine.pinproxy("ca", "show").output.contains("previous: CN=pinproxy on "))

            try await machine.rotate("--finish")
            #expect(
                try await machine.accepted([old, new, try await machine.bundle()]) == ["new.pem", "ca-bundle.pem"])
            let bundle = try String(contentsOfFile: try await machine.bundle(), encoding: .utf8)
            let (kept, gone) = (try bed.contents("new.pem"), try bed.contents("old.pem"))
            #expect(bundle.contains(kept) && !bundle.contains(gone))
            let left = try FileManager.default.contentsOfDirectory(atPath: machine.state).filter {
                $0.hasPrefix("authority")
            }
            #expect(left.sorted() == ["authority.key", "authority.pem"])
        }
    }

    /// A database created by the installation is removed with it, unless a user has added certificates.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/certutil")), arguments: [false, true])
    func theRemovalLeavesNothingInTheBrowsersStores(hasOther: Bool) async throws {
        try await withTestBed { bed in
            _ = try await Machine(bed)
            let environment = ["HOME": bed.path("home")]
            func ca(_ command: String) async throws {
                let run = try await bed.run(
                    [
                        ProxyProcess.executable, "ca", command, "--nss", "--config", bed.path("proxy/pinproxy.yaml"),
                        "--state-directory",
                        bed.path("proxy/state/pinproxy"),
                    ], environment: environment)
                #expect(run.succeeded, "\(run)")
            }
            try FileManager.default.createDirectory(atPath: bed.path("home"), withIntermediateDirectories: true)
            try await ca("install")
            let database = "sql:\(bed.path("home/.pki/nssdb"))"
            if hasOther {
                let added = try await bed.run([
                    "certutil", "-A", "-t", "C,,", "-n", "other", "-d", database, "-i", bed.path("roots.pem"),
                ])
                #expect(added.succeeded, "\(added)")
            }
            try await ca("remove")
            #expect(try FileManager.default.contentsOfDirectory(atPath: bed.path("home")) == (hasOther ? [".pki"] : []))
            if hasOther { #expect(try await bed.run(["certutil", "-L", "-n", "other", "-d", database]).succeeded) }
        }
    }

    /// While both are trusted, both are in the stores that programs bring, and after the last step only the new one is.
    @Test(.enabled(if: JVMCopy.isAvailable && FileManager.default.isExecutableFile(atPath: "/usr/bin/certutil")))
    func theStoresOfBrowsersAndJVMsFollow() async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed)
            let jvm = try await JVMCopy(bed, trusting: bed.path("roots.pem"))
            func ca(_ arguments: String...) async throws {
                let stores = ["--nss", "--java", "--config", bed.path("proxy/pinproxy.yaml")]
                let run = try await bed.run(
                    [ProxyProcess.executable, "ca"] + arguments + stores, environment: jvm.environment)
                #expect(run.succeeded, "\(run)")
            }
            /// As both stores name it.
            func name(_ file: String) async throws -> String {
                let openssl = ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", bed.path(file)]
                let hex = try await bed.run(openssl).output.split(separator: "=").last ?? ""
                return "pinproxy-" + hex.filter { $0 != ":" }.prefix(12).lowercased()
            }
            func expect(_ names: String..., comment: Comment) async throws {
                let list = try await bed.run(["certutil", "-L", "-d", "sql:\(bed.path(".pki/nssdb"))"])
                let browsers = list.output.matches(of: /pinproxy [0-9a-f]{12}/).map { String($0.output) }
                #expect(browsers.map { $0.replacing(" ", with: "-") }.sorted() == names.sorted(), comment)
                #expect(try await jvm.authorities() == names.sorted(), comment)
            }
            let old = try await name("old.pem")
            try await ca("install")
            try await expect(old, comment: "before")
            try await machine.rotate()
            let new = try await name("proxy/state/pinproxy/authority.next.pem")
            for step in [[], ["--activate"]] {
                if !step.isEmpty { try await machine.rotate("--activate") }
                for _ in 0..<2 { try await ca("install") }
                try await expect(old, new, comment: "\(step)")
            }
            try await machine.rotate("--finish")
            // As the last step says.
            try await ca("remove", "--all")
            try await ca("install")
            try await expect(new, comment: "after")
        }
    }

    @Test func stepsOutOfTurnSaySo() async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed)
            let early = try await machine.pinproxy("ca", "rotate", "--activate")
            #expect(!early.succeeded && early.errors.contains("there is no next authority"), "\(early)")
            try await machine.rotate()
            let wrong = try await machine.pinproxy("ca", "rotate", "--finish")
            #expect(!wrong.succeeded && wrong.errors.contains("--activate first"), "\(wrong)")
            let again = try await machine.pinproxy("ca", "rotate")
            #expect(again.succeeded && again.output.hasPrefix("there is already the next authority"), "\(again)")
            let two = try await machine.pinproxy("ca", "rotate", "--activate", "--finish")
            #expect(two.errors.contains("use one of them"), "\(two)")
        }
    }

    /// A broken leftover of a rotation stops neither a reload nor the signing authority.
    @Test func aBrokenNextAuthorityIsSaid() async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed)
            try await machine.rotate()
            try bed.file("proxy/state/pinproxy/authority.next.pem", "nonsense")
            #expect(try await machine.shared.proxy.reload().name == "config.reload")
            let event = try await machine.shared.proxy.events.first("authority.failed")
            #expect(event["cause"]?.contains("authority.next.pem") == true, "\(event)")
            #expect(try await machine.accepted([bed.path("old.pem")]) == ["old.pem"])
        }
    }

    /// Killed between key and certificate: a start uses the pair that matches.
    @Test func aStartTakesAnActivationThatWasInterrupted() async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed)
            try await machine.rotate()
            let state = machine.state
            try bed.file("proxy/state/pinproxy/authority.previous.pem", bed.contents("old.pem"))
            try bed.file("new.pem", bed.contents("proxy/state/pinproxy/authority.next.pem"))
            _ = try await bed.run(["cp", "-p", state + "/authority.next.key", state + "/authority.key"])
            #expect(try await machine.shared.proxy.reload().name == "config.reload")
            #expect(try await machine.accepted([bed.path("old.pem"), bed.path("new.pem")]) == ["old.pem"])
            machine.shared.proxy.process.send(signal: SIGTERM)
            _ = try await machine.shared.proxy.process.ending()
            let again = try await ProxyProcess(
                in: bed, trust: bed.path("roots.pem"), hosts: [OriginBed.name: "127.0.0.1"])
            let run = try await bed.run([
                "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--proxy", again.url, "--cacert",
                bed.path("new.pem"),
                machine.shared.url + "/echo",
            ])
            #expect(run.output == "200", "\(run)")
            let completed = try await machine.pinproxy("ca", "rotate", "--activate")
            #expect(completed.succeeded, "\(completed)")
            #expect(!FileManager.default.fileExists(atPath: state + "/authority.next.key"))
        }
    }
}
