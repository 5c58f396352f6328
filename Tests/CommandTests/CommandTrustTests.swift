import Foundation
import PinproxyIsolation
import PinproxySecurity
import Testing

@testable import pinproxy

/// Which commands see the proxy's authority in the system's trust stores, and how those are made.
@Suite struct CommandTrustTests {
    private let files = TrustFiles(bundle: "/b", authority: "/a")

    private func isGiven(_ command: String, _ wish: CommandTrust.Wish = .unasked, isRoot: Bool = false) -> Bool {
        CommandTrust(wish: wish, command: command, isRoot: isRoot).stores(files, [:]) != nil
    }

    @Test func unaskedItIsGivenToWhatBearsIt() {
        #expect(isGiven("curl") && isGiven("/usr/bin/make"))
        for command in ["sudo", "/usr/bin/sudo", "podman", "mount", "apt-get"] {
            #expect(!isGiven(command) && isGiven(command, .required), "\(command)")
        }
        // Root gets a private mount namespace, but no user namespace.
        #expect(isGiven("sudo", isRoot: true) && isGiven("podman", isRoot: true))
        #expect(!isGiven("mount", isRoot: true) && !isGiven("apt-get", isRoot: true))
        #expect(!isGiven("curl", .refused) && !isGiven("curl", .refused, isRoot: true))
    }

    /// mmdebstrap's apt reads neither variables nor another store.
    @Test(arguments: ["buildah", "/usr/bin/mmdebstrap"])
    func whatMapsSeveralUsersHasItIfItsUserHasNumbers(command: String) {
        let ids = SubordinateIDs(users: [.init(first: 100_000, count: 65536)], groups: [.init(first: 1, count: 2)])
        func isGiven(_ ids: SubordinateIDs?) -> Bool {
            CommandTrust(wish: .unasked, command: command, isRoot: false, findSubordinates: { ids })
                .stores(files, [:]) != nil
        }
        #expect(isGiven(ids) && !isGiven(nil))
    }

    /// If it is required anyway, the command warns about what will fail.
    @Test func whatCannotBearItIsSaid() {
        func trust(_ command: String, isRoot: Bool = false, _ ids: SubordinateIDs? = nil) -> CommandTrust {
            CommandTrust(wish: .required, command: command, isRoot: isRoot, findSubordinates: { ids })
        }
        func warning(_ command: String, isRoot: Bool = false) -> String? { trust(command, isRoot: isRoot).warning }
        #expect(
            warning("/usr/bin/podman")?.contains("/usr/bin/podman creates user namespaces with several users") == true)
        #expect(warning("sudo")?.contains("sudo acts for another user") == true)
        #expect(warning("curl") == nil && warning("podman", isRoot: true) == nil)
        // Subordinate IDs are mapped if the user has some.
        let ids = SubordinateIDs(users: [.init(first: 100_000, count: 65536)], groups: [.init(first: 1, count: 2)])
        #expect(trust("buildah", ids).warning == nil && trust("buildah", ids).subordinates == ids)
        #expect(trust("sudo", ids).warning != nil)
        #expect(trust("curl", ids).subordinates == nil && trust("buildah", isRoot: true, ids).subordinates == nil)
    }

    @Test func filesThatProgramsBringAlong() throws {
        let bed = try CommandBed("a [b] *")
        let folder = "lib/python3.11/site-packages"
        for name in ["\(folder)/certifi/cacert.pem", "\(folder)/pip/_vendor/certifi/cacert.pem"] {
            let path = bed.path("tool/\(name)")
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: path))
        }
        let found = ["certifi/cacert.pem", "pip/_vendor/certifi/cacert.pem"].map { bed.path("tool/\(folder)/\($0)") }
        func own(_ files: [String]) -> [String] { files.filter { $0.hasPrefix(bed.directory) }.sorted() }
        #expect(own(BundledTrust.files(for: "none", ["VIRTUAL_ENV": bed.path("tool")])) == found)
        #expect(own(BundledTrust.files(for: bed.path("tool/bin/run"), [:])) == found)
        #expect(own(BundledTrust.files(for: "none", ["HOME": "relative", "VIRTUAL_ENV": "tool"])).isEmpty)
    }

    // MARK: Said once

    @Test func itIsSaidOnceForEachText() throws {
        let bed = try CommandBed()
        let directory = TrustedDirectory(bed.path("state"))
        let said = SaidOnce(directories: [TrustedDirectory(bed.path("none/\u{0}")), directory])
        said.say("one")
        #expect(try bed.read("state/\(SaidOnce.name)") == "one\n")
        said.say("other")
        #expect(try bed.read("state/\(SaidOnce.name)") == "one\nother\n")
    }

    // MARK: A new line

    @Test func theCursorMovesOnOnlyIfItIsNotFirst() {
        #expect(FreshLine.moveOn(4) == "   \r")
        #expect(FreshLine.moveOn(0) == "\r")
    }

    // MARK: What is already made

    @Test func filesAreTakenAsTheyAreWhileNothingHasChanged() throws {
        let bed = try CommandBed()
        for name in ["bundle", "authority", "store", "roots"] { try bed.write(name, name) }
        let stamp = TrustStamp(folder: "trust/key", directory: TrustedDirectory(bed.path("state")))
        let sources = TrustStamp.Sources(roots: bed.path("roots"), authorities: ["one"])
        let files = TrustFiles(
            bundle: bed.path("bundle"), authority: bed.path("authority"), javaStore: bed.path("store"),
            hashed: [.init(hash: "0a1b2c3d", pem: "-----BEGIN\nAA==\n-----END\n"), .init(hash: "1", pem: "x")])
        #expect(stamp.files(of: sources) == nil)
        stamp.keep(files, of: sources)
        #expect(stamp.files(of: sources) == files)
        #expect(stamp.files(of: .init(roots: bed.path("roots"), authorities: ["one", "two"])) == nil)
        #expect(stamp.files(of: .init(roots: bed.path("authority"), authorities: ["one"])) == nil)
        for name in ["bundle", "authority", "store", "roots"] {
            stamp.keep(files, of: sources)
            #expect(stamp.files(of: sources) == files)
            try bed.write(name, "changed")
            #expect(stamp.files(of: sources) == nil, "\(name)")
        }
        try FileManager.default.removeItem(atPath: bed.path("store"))
        stamp.keep(files, of: sources)
        #expect(stamp.files(of: sources) == nil)
        // The file was modified.
        let path = bed.path("state/trust/key/\(TrustStamp.name)")
        for text in ["", "\n\n\n", "x\n/b\n/a\n"] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            #expect(stamp.files(of: sources) == nil)
        }
    }

    /// If no other authority is beside it, its file needn't be read to find what was made from it.
    @Test func filesOfAnAuthorityAreFoundByItsFile() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "create").code == 0)
        let state = StateFiles(directory: bed.path("state/pinproxy"))
        let files = AuthorityFiles(
            certificate: "\(state.directory)/authority.pem", key: "\(state.directory)/authority.key",
            state: state.directory)
        #expect(files.isAlone)
        func prepare() throws -> TrustFiles { try TrustFiles.prepare(authority: files, in: [state], environment: [:]) }
        let first = try prepare()
        #expect(first.hashed.count == 1)
        #expect(try prepare() == first)
        // Replaced by another one.
        let other = try CommandBed()
        #expect(try other.configured("ca", "create").code == 0)
        let certificate = try other.read("state/pinproxy/authority.pem")
        try bed.write("state/pinproxy/authority.pem", certificate)
        let second = try prepare()
        #expect(second.bundle != first.bundle && second.hashed.map(\.pem) != first.hashed.map(\.pem))
        #expect(try bed.read("state/pinproxy/authority.pem").hasPrefix(second.hashed[0].pem))
        // A rotation adds another.
        try bed.write("state/pinproxy/authority.next.pem", first.hashed[0].pem)
        #expect(!files.isAlone)
        #expect(try prepare().hashed.count == 2)
    }

    // MARK: gsutil

    @Test(
        arguments: [
            ([:], "/etc/boto.cfg:/home/me/.boto:\(CommandTrustTests.boto)", nil),
            (["BOTO_PATH": "/x:/y"], "/x:/y:\(CommandTrustTests.boto)", "/x:/y"),
        ] as [([String: String], String, String?)])
    func botosFilesAreKept(_ present: [String: String], _ value: String, _ rest: String?) {
        let present = present.merging(["HOME": "/home/me"]) { $1 }
        let added = BotoPath.adding(Self.boto, to: present)
        #expect(added == value)
        let again = present.merging(["BOTO_PATH": added]) { $1 }
        #expect(BotoPath.adding(Self.boto, to: again) == value)
        #expect(BotoPath.rest(of: again) == rest)
    }

    private static let boto = "/s/trust/0123456789abcdef/boto"

    // MARK: Firefox

    @Test func profilesOfFirefoxAreFound() throws {
        let bed = try CommandBed()
        let places = [
            ".mozilla/firefox", ".config/mozilla/firefox", "snap/firefox/common/.mozilla/firefox",
            "snap/firefox/common/.config/mozilla/firefox",
            ".var/app/org.mozilla.firefox/.mozilla/firefox", ".var/app/org.mozilla.firefox/config/mozilla/firefox",
            "xdg/mozilla/firefox",
        ]
        for place in places {
            let profile = bed.path("\(place)/abc.default")
            try FileManager.default.createDirectory(atPath: profile, withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: profile + "/cert9.db"))
        }
        let found = NSSDatabases(home: bed.directory, settings: bed.path("xdg")).directories
        #expect(Set(found) == Set([bed.path(".pki/nssdb")] + places.map { bed.path("\($0)/abc.default") }))
        // A directory named twice counts once.
        let own = NSSDatabases(home: bed.directory, settings: bed.path(".config")).directories
        #expect(own.count == Set(own).count)
    }
}
