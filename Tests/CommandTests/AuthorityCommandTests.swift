import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import pinproxy

@Suite struct AuthorityCommandTests {
    @Test func createsOnceAndShows() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "show").code == 1)

        let created = try bed.configured("ca", "create")
        #expect(created.code == 0)
        let certificate = try Certificate(derOrPEM: Array(try bed.read("state/pinproxy/authority.pem").utf8))
        let fingerprint = certificate.sha256.bytes.map { String(format: "%02X", $0) }.joined(separator: ":")
        #expect(created.output.contains("SHA-256:        \(fingerprint)\n"))
        let mode = try FileManager.default.attributesOfItem(atPath: bed.path("state/pinproxy/authority.key"))
        #expect(mode[.posixPermissions] as? Int == 0o600)

        #expect(try bed.configured("ca", "show").output == created.output)
        #expect(try bed.configured("ca", "show", "--pem").output == certificate.pem)

        let again = try bed.configured("ca", "create")
        #expect(again.code == 1)
        #expect(again.errors.contains("authority.pem exists already"))
        #expect(try bed.read("state/pinproxy/authority.pem") == certificate.pem)
    }

    @Test func prefersTheDirectoriesOfTheServiceManager() throws {
        let bed = try CommandBed()
        let configuration = bed.path("pinproxy.yaml")
        let service = ["STATE_DIRECTORY": bed.path("service") + ":/other"]
        #expect(try bed.run("ca", "create", "--config", configuration, environment: service).code == 0)
        #expect(FileManager.default.fileExists(atPath: bed.path("service/authority.pem")))
        let named = bed.path("named")
        #expect(
            try bed.run(
                "ca", "create", "--config", configuration, "--state-directory", named, environment: service
            ).code == 0)
        #expect(FileManager.default.fileExists(atPath: named + "/authority.pem"))
    }

    /// The store, with a command that only records that it was called.
    private func store(_ bed: CommandBed, _ script: String = "echo x >> calls") throws -> SystemTrustStore {
        try FileManager.default.createDirectory(atPath: bed.path("store"), withIntermediateDirectories: true)
        return SystemTrustStore(
            directory: bed.path("store"), command: ["/bin/sh", "-c", "cd '\(bed.directory)'; \(script)"])
    }

    @Test func installsAndRemoves() throws {
        let bed = try CommandBed()
        let store = try store(bed)
        let certificate = try Certificate(derOrPEM: try HeldCertificate.root().der)
        #expect(try store.install(certificate))
        #expect(try !store.install(certificate))
        let path = store.path(for: certificate)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == certificate.pem)
        #expect(path.hasSuffix("/pinproxy-\(certificate.sha256.hex.prefix(12)).crt"))
        #expect(store.installed() == [path])
        try store.remove([path])
        #expect(store.installed() == [])
        #expect(try bed.read("calls") == "x\nx\nx\n")
    }

    /// Debian's own command, in the test's directories.
    @Test func removingLeavesNoLinksBehind() throws {
        let bed = try CommandBed()
        for name in ["store", "certs", "shared"] {
            try FileManager.default.createDirectory(atPath: bed.path(name), withIntermediateDirectories: true)
        }
        try bed.write("conf", "# none\n")
        // An unrelated certificate.
        try bed.write("store/other.crt", try HeldCertificate.selfSigned(.root("Other")).pem)
        let store = SystemTrustStore(
            directory: bed.path("store"),
            command: [
                "/usr/sbin/update-ca-certificates", "--localcertsdir", bed.path("store"), "--etccertsdir",
                bed.path("certs"),
                "--certsdir", bed.path("shared"), "--certsconf", bed.path("conf"), "--hooksdir", bed.path("hooks"),
            ])
        let certificate = try Certificate(derOrPEM: try HeldCertificate.root().der)
        let links = {
            try FileManager.default.contentsOfDirectory(atPath: bed.path("certs")).filter { !$0.hasSuffix(".crt") }
        }
        #expect(try store.install(certificate))
        // By its name, and by its subject's hash.
        #expect(try links().count == 4)
        try store.remove([store.path(for: certificate)])
        let left = try links()
        #expect(left.count == 2 && left.contains("other.pem"), "\(left)")
        #expect(try bed.read("certs/ca-certificates.crt").components(separatedBy: "BEGIN CERTIFICATE").count == 2)
    }

    @Test func passesOnWhatTheSystemSays() throws {
        let bed = try CommandBed()
        let store = try store(bed, "echo 'no space left' >&2; exit 3")
        let certificate = try Certificate(derOrPEM: try HeldCertificate.root().der)
        let failure = #expect(throws: CommandFailure.self) { try store.install(certificate) }
        #expect(failure?.code == 1)
        #expect(failure?.message?.contains("no space left") == true)
    }
}
