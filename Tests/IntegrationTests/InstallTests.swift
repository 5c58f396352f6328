import Foundation
import Testing

/// `make install`, of a build that is there already: the tree that a package would hold.
@Suite(.timeLimit(.minutes(5)))
struct InstallTests {
    private func install(_ bed: TestBed) async throws -> Run {
        try await bed.run([
            "make", "-C", Documentation.repository, "-o", "release", "install", "PROGRAM=\(ProxyProcess.executable)",
            "DESTDIR=\(bed.path("root"))", "PREFIX=/opt/proxy", "SYSCONFDIR=/opt/etc",
        ])
    }

    @Test func theTreeIsWholeAndItsUnitsAreRight() async throws {
        try await withTestBed { bed in
            let run = try await install(bed)
            #expect(run.succeeded, "\(run)")
            let version = try await bed.run([bed.path("root/opt/proxy/bin/pinproxy"), "--version"])
            #expect(version.succeeded, "\(version)")
            let check = try await bed.run([
                bed.path("root/opt/proxy/bin/pinproxy"), "check", "--config",
                bed.path("root/opt/etc/pinproxy/pinproxy.yaml"),
            ])
            #expect(check.succeeded, "\(check)")
            let unit = try bed.contents("root/opt/proxy/lib/systemd/system/pinproxy.service")
            let signer = try bed.contents("root/opt/proxy/lib/systemd/system/pinproxy-signer.service")
            #expect(
                unit.contains(
                    "ExecStart=/opt/proxy/bin/pinproxy run --handover --config /opt/etc/pinproxy/pinproxy.yaml\n"),
                "\(unit)")
            for text in [unit, signer] { #expect(text.contains("\nLimitCORE=0\n"), "\(text)") }
            #expect(!unit.contains("=/usr/bin") && !unit.contains("=/etc/"))
            for name in ["pinproxy.socket", "pinproxy-signer.socket"] {
                _ = try bed.contents("root/opt/proxy/lib/systemd/system/\(name)")
            }
            #expect(
                signer.contains("ExecStart=/opt/proxy/bin/pinproxy signer --config /opt/etc/pinproxy/pinproxy.yaml\n"),
                "\(signer)")
            _ = try bed.contents("root/opt/proxy/lib/sysusers.d/pinproxy.conf")
            // The units of instances differ only in their own names.
            let instance = try bed.contents("root/opt/proxy/lib/systemd/system/pinproxy@.service")
            #expect(
                instance.contains(
                    "ExecStart=/opt/proxy/bin/pinproxy run --handover --config /opt/etc/pinproxy/%i.yaml\n"),
                "\(instance)")
            #expect(
                instance.contains("ExecReload=/opt/proxy/bin/pinproxy reload --config /opt/etc/pinproxy/%i.yaml\n"),
                "\(instance)")
            let own = zip(unit.split(separator: "\n"), instance.split(separator: "\n")).filter { $0 != $1 }.map {
                String($1)
            }
            #expect(unit.split(separator: "\n").count == instance.split(separator: "\n").count)
            for line in ["StateDirectory=pinproxy-instances/%i", "RuntimeDirectory=pinproxy-%i"] {
                #expect(own.contains(line), "\(own)")
            }
            #expect(own.count == 6, "\(own)")
            #expect(try bed.contents("root/opt/proxy/lib/systemd/catalog/pinproxy.catalog").contains("Subject: "))
            for name in ["alerts.yml", "grafana.json"] {
                _ = try bed.contents("root/opt/proxy/share/pinproxy/monitoring/\(name)")
            }
            let catalog = try await bed.run([
                "/bin/sh", "-c",
                """
                cd '\(bed.path("root"))' && mkdir -p usr/lib/systemd && cp -r opt/proxy/lib/systemd/catalog \
                usr/lib/systemd && journalctl --update-catalog --root=$PWD
                """,
            ])
            #expect(catalog.succeeded && catalog.errors.isEmpty, "\(catalog)")
        }
    }

    @Test func whatSomebodyHasWrittenStays() async throws {
        try await withTestBed { bed in
            try bed.file("root/opt/etc/pinproxy/pins.yaml", "hosts: []\n")
            #expect(try await install(bed).succeeded)
            #expect(try bed.contents("root/opt/etc/pinproxy/pins.yaml") == "hosts: []\n")
        }
    }

    /// The service's exposure, where 0 is fully confined (systemd-analyze(1)). NotifyAccess=all counts 0.2.
    @Test(
        .enabled(if: IsolationBed.isMountable, "needs mount namespaces"),
        arguments: ["pinproxy.service", "pinproxy-signer.service"])
    func theServiceIsConfined(unit: String) async throws {
        try await withTestBed { bed in
            // It creates a missing /run/systemd, which needs root.
            let root = getuid() == 0 ? [] : ["--user", "--map-root-user"]
            let launcher =
                ["unshare"] + root + ["--mount", "sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh"]
            let run = try await bed.run(
                launcher + [
                    "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=16",
                    "\(Documentation.repository)/systemd/\(unit)",
                ])
            #expect(run.succeeded, "\(run)")
        }
    }
}
