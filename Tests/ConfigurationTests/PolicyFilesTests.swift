import Foundation
import PinproxyBundles
import PinproxySecurity
import PinproxyTLS
import Testing

@testable import PinproxyConfiguration

/// A pin file read alone: its contents, and the files that it names.
@Suite struct PolicyFilesTests {
    private func named(_ pins: String) throws -> [NamedFile] {
        let bed = try ConfigurationBed(pins: pins, ["pins/secret.txt": "word", "pins/body.bin": "x"])
        return try PolicyFiles.load(bed.path("pins/hosts.yaml")).named
    }

    @Test(
        arguments: [
            ("{match: a.test, pinning: public-key, pins: [{file: certs/ca.pem}]}", ["file certs/ca.pem"]),
            (
                "{match: a.test, request: {authorization: {user: u, password_file: secret.txt}}}",
                ["password_file secret.txt"]
            ),
            (
                "{match: a.test, session: {credentials: {user: u, password_file: secret.txt}}}",
                ["password_file secret.txt"]
            ),
            ("{match: a.test, request: {headers: {X-A: {file: secret.txt}}}}", ["file secret.txt"]),
            (
                "{match: a.test, client_certificate: {certificate: c.pem, private_key: c.key}}",
                ["certificate c.pem", "private_key c.key"]
            ),
            (
                "{match: a.test, client_certificate: {pkcs12: c.p12, password_file: secret.txt}}",
                ["pkcs12 c.p12", "password_file secret.txt"]
            ),
            ("{match: a.test, action: tunnel}", []),
        ] as [(String, [String])]) func everyNamedFileIsNoted(entry: String, names: [String]) throws
    {
        let named = try named("hosts:\n- \(entry)\n")
        #expect(named.map { "\($0.key) \($0.name)" } == names)
        for file in named {
            #expect(file.place.line == 2)
            #expect(file.path.hasSuffix("/pins/\(file.name)"))
            let isPolicy = file.name == "certs/ca.pem"
            #expect(file.purpose == (isPolicy ? .policy : .secret))
            #expect((file.objectionToCarrying(beside: file.place.file) == nil) == isPolicy)
        }
    }

    /// The file is on each machine, and not on the policy author's.
    @Test(arguments: [("/none/a.crl", true), ("credential:a", true), ("a.crl", false), ("../a.crl", false)])
    func revocationListsAreNamedAndNotRead(name: String, isTaken: Bool) throws {
        let bed = try ConfigurationBed(pins: "hosts:\n- {match: a.test, crl_files: [\(name)]}\n")
        let policy = try PolicyFiles.load(bed.path("pins/hosts.yaml"))
        let file = try #require(policy.named.first)
        #expect(policy.named.count == 1)
        #expect(file.isOfMachine == isTaken)
        #expect((file.objectionToCarrying(beside: file.place.file) == nil) == isTaken)
        #expect(policy.hosts.values.first?.policy.requirements.revocationLists?.paths == [file.path])
    }

    /// Secrets that are missing, or readable by everybody, are not a problem.
    @Test func noSecretIsRead() throws {
        let text = "hosts:\n- {match: a.test, request: {authorization: {user: u, password_file: none.txt}}}\n"
        #expect(try named(text).map(\.purpose) == [.secret])
    }

    @Test func theContentsOfARequestAreNotPolicy() throws {
        let text = """
            hosts:
            - match: a.test
              request: {serializer: multipart, parts: [{name: f, file: body.bin}]}
            """
        let bed = try ConfigurationBed(pins: text, ["pins/body.bin": "x"])
        let named: [NamedFile]
        do { named = try PolicyFiles.load(bed.path("pins/hosts.yaml")).named } catch {
            Issue.record("\(error)")
            return
        }
        #expect(named.map(\.purpose) == [.content])
        let file = try #require(named.first)
        #expect(
            file.objectionToCarrying(beside: file.place.file)
                == "the contents of a request, which a bundle doesn't carry")
    }

    /// Files of included folders and of the file's directory keep their place.
    @Test func furtherFilesAndWhatTheyNameAreCarried() throws {
        let entry = { (host: String) in "hosts:\n- {match: \(host), pinning: certificate, pins: [{file: ca.pem}]}\n" }
        let bed = try ConfigurationBed(
            pins: "include: [./teams/*.yaml]\nhosts: []\n",
            ["pins/teams/web.yaml": entry("web.test"), "pins/hosts.d/x.yaml": entry("x.test")])
        let certificate = Array(try String(contentsOfFile: bed.path("ca.pem"), encoding: .utf8).utf8)
        for folder in ["teams", "hosts.d"] { try bed.write("pins/\(folder)/ca.pem", certificate) }
        let main = bed.path("pins/hosts.yaml")
        let policy = try PolicyFiles.load(main)
        #expect(policy.named.compactMap { $0.objectionToCarrying(beside: main) } == [])
        let carried = Set(policy.named.compactMap { $0.bundlePath(beside: main) })
        #expect(carried == ["teams/web.yaml", "teams/ca.pem", "pins.d/x.yaml", "pins.d/ca.pem"])
        var files = [BundleFile(path: "pins.yaml", bytes: Array("include: [./teams//*.yaml]\nhosts: []\n".utf8))]
        for file in policy.named {
            let path = try #require(file.bundlePath(beside: main))
            guard !files.contains(where: { $0.path == path }) else { continue }
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file.path)))
            files.append(BundleFile(path: path, bytes: bytes))
        }
        let read = try PolicyFiles.load(files)
        #expect(read.hosts.values.map(\.pattern).sorted() == ["web.test", "x.test"])
        #expect(read.hosts.values.allSatisfy { $0.policy.mode == .certificate })
    }

    @Test(
        arguments: [
            ("a.pem", "a.pem", true), ("./a//b.pem", "a/b.pem", true), ("a/./b.pem", "a/b.pem", true),
            ("/a.pem", nil, false), ("//a.pem", nil, false), ("../a.pem", nil, false), ("a/../b.pem", nil, false),
            ("..a.pem", "..a.pem", true), ("credential:a", nil, false), ("/p/a.pem", "a.pem", false),
        ] as [(String, String?, Bool)])
    func aBundleCarriesWhatIsBelowThePinFile(name: String, path: String?, isCarried: Bool) {
        for main in ["/p/pins.yaml", "/p/./pins.yaml"] {
            let file = NamedFile(
                name: name, path: FileContents.resolve(name, relativeTo: main), purpose: .policy, key: "file",
                place: Place(file: main))
            #expect(file.bundlePath(beside: main) == path)
            #expect((file.objectionToCarrying(beside: main) == nil) == isCarried)
        }
    }

    @Test func theDefaultsAreReadToo() throws {
        let bed = try ConfigurationBed(
            pins: "defaults: {action: deny, min_tls: \"1.3\"}\nhosts:\n- {match: a.test, action: tunnel}\n")
        let policy = try PolicyFiles.load(bed.path("pins/hosts.yaml"))
        #expect(policy.defaultAction == .deny)
        #expect(policy.defaultPolicy.requirements.minimumTLS == .tls13)
        #expect(policy.hosts.values.map(\.pattern) == ["a.test"])
    }

    @Test func aWrongFileIsRefusedWithItsPlace() throws {
        let bed = try ConfigurationBed(pins: "hosts: []\nhostz: []\n")
        #expect(throws: ConfigurationProblems.self) { try PolicyFiles.load(bed.path("pins/hosts.yaml")) }
        #expect(throws: ConfigurationProblems.self) { try PolicyFiles.load(bed.path("pins/none.yaml")) }
    }
}
