import Foundation
import Testing

/// The command line with a real daemon.
@Suite(.timeLimit(.minutes(5)))
struct CommandTests {
    private func pinproxy(_ bed: TestBed, _ arguments: String...) async throws -> Run {
        try await bed.run([ProxyProcess.executable] + arguments, environment: ProxyProcess.environment(in: bed))
    }

    @Test func everyProblemIsNamedWithItsPlace() async throws {
        try await withTestBed { bed in
            try bed.file("wrong.yaml", "proxy:\n  lissten: 127.0.0.1:0\ntimeouts: {connect: soon}\npins: pins.yaml\n")
            try bed.file("pins.yaml", "hosts:\n  - match: a.test\n    pinning: public-key\n    pins: [sha256/AAAA]\n")
            for command in ["check", "run"] {
                let run = try await pinproxy(bed, command, "--config", bed.path("wrong.yaml"))
                #expect(run.ending == .exited(78), "\(run)")
                #expect(run.errors.contains("wrong.yaml:2:3: error: "), "\(run)")
                #expect(run.errors.contains("listen"), "\(run)")
                #expect(run.errors.contains("wrong.yaml:3:21: error: "), "\(run)")
                #expect(run.errors.contains("pins.yaml:4:12: error: "), "\(run)")
            }
        }
    }

    @Test func reloadTellsHowItWent() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let configuration = bed.path("proxy/pinproxy.yaml")
            let right = try await pinproxy(bed, "reload", "--config", configuration)
            #expect(right.succeeded, "\(right)")
            try bed.file("proxy/pins.yaml", "hosts: [")
            let wrong = try await pinproxy(bed, "reload", "--config", configuration)
            #expect(wrong.ending == .exited(78), "\(wrong)")
            #expect(wrong.errors.contains("pins.yaml:"), "\(wrong)")
            #expect(try await shared.proxy.connect(to: shared.authority).status == 200)
        }
    }

    @Test func aKeyThatOthersCanReadIsRefused() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let key = bed.path("proxy/state/pinproxy/authority.key")
            #expect(try FileManager.default.attributesOfItem(atPath: key)[.posixPermissions] as? Int == 0o600)
            await proxy.process.stop()
            chmod(key, 0o640)
            let run = try await pinproxy(bed, "run", "--config", bed.path("proxy/pinproxy.yaml"))
            #expect(!run.succeeded)
            #expect((run.errors + run.output).contains("authority.key"), "\(run)")
        }
    }

    @Test func anAddressInUseEndsTheStart() async throws {
        try await withTestBed { bed in
            let taken = try ListeningSocket()
            try bed.file("pins.yaml", "hosts: []\n")
            try bed.file("taken.yaml", "proxy:\n  listen: 127.0.0.1:\(taken.port)\npins: pins.yaml\n")
            let run = try await pinproxy(bed, "run", "--config", bed.path("taken.yaml"))
            #expect(run.ending == .exited(1), "\(run)")
            #expect(run.errors.contains("127.0.0.1:\(taken.port) is already in use"), "\(run)")
            #expect(run.errors.contains("taken.yaml"), "\(run)")
        }
    }
}
