import Foundation
import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration

/// `admin` in pinproxy.yaml.
@Suite struct AdminSectionTests {
    private static let token = String(repeating: "0123456789abcdef", count: 4)

    private func bed(_ admin: String, token: String = token, mode: Int = 0o600) throws -> ConfigurationBed {
        let bed = try ConfigurationBed([
            "pinproxy.yaml": "\(admin)\npins: null\nupstream: {trust: ca.pem}\n",
            "ca.pem": try HeldCertificate.root().pem,
            "token": token + "\n",
        ])
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: bed.path("token"))
        let identity = try HeldCertificate.root()
        try bed.write("admin.pem", Array(identity.pem.utf8))
        try bed.write("admin.key", Array(identity.keyPEM.utf8))
        return bed
    }

    @Test func thereIsNoneWhereNoneIsWritten() throws {
        for text in ["", "admin: null", "admin: {}", "admin: {listen: null}", "admin: {listen: []}"] {
            let bed = try bed(text)
            #expect(try bed.load().admin.listen.isEmpty, "\(text)")
        }
        #expect(
            try bed("admin: {token_file: token}").problems().first?.contains("warning: admin: \"listen\" is missing")
                == true)
    }

    @Test func itListensOnAddressesAndUnixSockets() throws {
        let bed = try bed(
            "admin: {listen: [127.0.0.1:7468, \"[::1]:7468\", unix:run/admin.sock], hosts: [Proxy.example.com], "
                + "token_file: token, socket_mode: \"0660\", socket_group: root}")
        let admin = try bed.load().admin
        #expect(
            admin.listen.map(\.description) == ["127.0.0.1:7468", "[::1]:7468", "unix:\(bed.path("run/admin.sock"))"])
        #expect(admin.hosts == ["proxy.example.com"])
        #expect(admin.token != nil)
        #expect(admin.socket == SocketAccess(mode: 0o660, group: 0))
    }

    @Test func whatOthersCanReachNeedsTLSAndAToken() throws {
        for (more, missing) in [
            ("", "tls and token_file"), (", token_file: token", "tls"),
            (", tls: {certificate: admin.pem, private_key: admin.key}", "token_file"),
        ] {
            for address in ["0.0.0.0:7468", "\"[::]:7468\"", "192.0.2.1:7468", "\"[::ffff:127.0.0.1]:7468\""] {
                let problems = try bed("admin: {listen: \(address)\(more)}").problems()
                #expect(problems.count == 1 && problems[0].contains("so \(missing) must be set too"), "\(problems)")
            }
        }
        let whole = try bed(
            "admin: {listen: 0.0.0.0:7468, token_file: token, tls: {certificate: admin.pem, private_key: admin.key}}")
        #expect(try whole.load().admin.tls != nil)
    }

    @Test(arguments: [
        ("{listen: 127.0.0.1:7467}", "127.0.0.1:7467 is where the proxy listens (proxy.listen); choose another port"),
        ("{listen: [127.0.0.1:7468, 127.0.0.1:7468]}", "127.0.0.1:7468 is written twice"),
        ("{listen: \"unix:\"}", "names no socket"), ("{listen: localhost:7468}", "\"localhost\" is a name"),
        ("{listen: 127.0.0.1:7468, hosts: [\"a.test:80\"]}", "leave out the port"),
        ("{listen: 127.0.0.1:7468, hosts: [\"a b\"]}", "write a host name"),
        ("{listen: unix:a.sock, socket_mode: 9}", "\"9\" is not a file mode; write e.g. \"0660\""),
        ("{listen: unix:a.sock, socket_mode: \"01777\"}", "is not a file mode"),
        ("{listen: unix:a.sock, socket_group: nobody-of-that-name}", "there is no group \"nobody-of-that-name\""),
        (
            "{listen: 127.0.0.1:7468, token_file: nothing}",
            "write the name of a file that contains the token, not the token"
        ),
    ])
    func whatIsWrongIsSaid(_ admin: String, _ cause: String) throws {
        let problems = try bed("admin: \(admin)").problems()
        #expect(problems.count == 1 && problems[0].contains("error: ") && problems[0].contains(cause), "\(problems)")
    }

    @Test(arguments: [("666", true), ("\"0662\"", true), ("\"0777\"", true), ("\"0660\"", false), ("\"0664\"", false)])
    func aSocketForEverybodyIsWarnedOf(_ mode: String, _ isWarned: Bool) throws {
        let problems = try bed("admin: {listen: unix:a.sock, socket_mode: \(mode)}").problems()
        #expect(problems.count == (isWarned ? 1 : 0), "\(problems)")
        if isWarned {
            #expect(problems[0].contains("warning: socket_mode: every user of this machine may connect"), "\(problems)")
        }
    }

    @Test(arguments: ["short", "", "0123456789abcdef 0123456789", "0123456789abcdef\u{e9}", "\"0123456789abcdef\""])
    func aTokenThatIsNoneIsRefusedAndNotShown(_ token: String) throws {
        let problems = try bed("admin: {listen: 127.0.0.1:7468, token_file: token}", token: token).problems()
        #expect(problems.count == 1 && problems[0].contains("openssl rand -hex 32"), "\(problems)")
        #expect(token.isEmpty || !problems[0].contains(token))
    }

    @Test func aTokenThatOthersMayReadIsRefused() throws {
        let problems = try bed("admin: {listen: 127.0.0.1:7468, token_file: token}", mode: 0o644).problems()
        #expect(problems.count == 1 && problems[0].contains("chmod 600"), "\(problems)")
    }
}
