import Glibc
import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Anchors from files, with and without the machine's own.
@Suite final class AnchorFileTests {
    let directory: String
    let root: HeldCertificate

    init() throws {
        var template = Array("/tmp/anchors-XXXXXX".utf8CString)
        directory = try #require(mkdtemp(&template).map { String(cString: $0) })
        root = try HeldCertificate.root()
    }

    deinit {
        for name in ["a.pem", "b.pem", "broken.pem", "empty.pem"] { unlink("\(directory)/\(name)") }
        rmdir(directory)
    }

    private func file(_ name: String, _ text: String) throws -> String {
        let path = "\(directory)/\(name)"
        try HeldCertificate.write(text, to: path, mode: 0o644)
        return path
    }

    @Test func severalFiles() throws {
        let other = try HeldCertificate.root("Other")
        let a = try file("a.pem", root.pem + other.pem)
        let b = try file("b.pem", other.pem)
        let anchors = try TrustAnchors.load(system: false, files: [a, b])
        #expect(anchors.certificates.map(\.der) == [root.der, other.der])
        #expect(anchors.contains(try Certificate(der: other.der)))
        #expect(try TrustAnchors.load(system: false, files: []).certificates.isEmpty)
    }

    @Test func theMachinesBundleIsTheFirstThatExists() throws {
        let a = try file("a.pem", root.pem)
        let anchors = try TrustAnchors.system(bundles: ["\(directory)/none.pem", a, "\(directory)/nor this"])
        #expect(anchors.certificates.map(\.der) == [root.der])
        #expect(throws: AnchorsError.noSystemBundle(tried: ["/nowhere"])) {
            try TrustAnchors.system(bundles: ["/nowhere"])
        }
    }

    @Test func filesThatCantBeUsed() throws {
        let missing = "\(directory)/missing.pem"
        #expect(throws: AnchorsError.unreadable(path: missing, .system(ENOENT))) {
            try TrustAnchors.load(system: false, files: [missing])
        }
        #expect(throws: AnchorsError.unreadable(path: directory, .notAFile)) {
            try TrustAnchors.load(system: false, files: [directory])
        }
        for (name, text) in [("empty.pem", ""), ("broken.pem", root.pem + root.pem.dropLast(40))] {
            let path = try file(name, text)
            #expect {
                try TrustAnchors.load(system: false, files: [path])
            } throws: {
                ($0 as? AnchorsError)?.description.hasPrefix(path + ": ") == true
            }
        }
        #expect(
            AnchorsError.unreadable(path: "x.pem", .system(ENOENT)).description == "x.pem: No such file or directory")
    }

    /// This pipe has no writer: waiting for it would never end.
    @Test func aPipeIsNotWaitedFor() throws {
        let pipe = "\(directory)/a.pem"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect {
            try TrustAnchors.load(system: false, files: [pipe])
        } throws: {
            "\($0)" == "\(pipe): not a regular file"
        }
        #expect {
            try RevocationLists.load([pipe])
        } throws: {
            "\($0)" == "\(pipe): not a regular file"
        }
        #expect {
            try TransparencyLogs.load(pipe)
        } throws: {
            "\($0)" == "\(pipe): not a regular file"
        }
        // A file without an end.
        #expect(throws: TransparencyLogsError.self) { try TransparencyLogs.load("/dev/zero") }
    }
}
