import Foundation
import Glibc
import PinproxySecurity
import PinproxyTLS
import Testing

@testable import PinproxyConfiguration

/// Pin files beside the main one: `include`, and the file's directory.
@Suite struct FurtherPinFileTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func entry(_ host: String) -> String {
        "hosts:\n  - {match: \(host), pinning: public-key, pins: [\(Self.pin)], enforcement: report}\n"
    }

    @Test func entriesOfAllFilesHold() throws {
        let bed = try ConfigurationBed(
            pins: "defaults: {min_tls: 1.3}\ninclude: [../team/web.yaml, ../tools/*.yaml]\n" + entry("main.test"),
            [
                "team/web.yaml": entry("web.test"), "tools/b.yaml": entry("b.test"), "tools/a.yaml": entry("a.test"),
                "pins/hosts.d/10-x.yaml": entry("x.test"), "pins/hosts.d/.hidden.yaml": "no YAML: [",
                "pins/hosts.d/README": "no YAML: [", "pins/hosts.d/old.yaml~": "no YAML: [",
            ])
        let snapshot = try bed.load()
        #expect(
            snapshot.files.map { $0.replacingOccurrences(of: bed.directory + "/", with: "") }
                == [
                    "pinproxy.yaml", "pins/hosts.yaml", "pins/../team/web.yaml", "pins/../tools/a.yaml",
                    "pins/../tools/b.yaml", "pins/hosts.d/10-x.yaml",
                ])
        #expect(snapshot.pinFile == bed.path("pins/hosts.yaml"))
        for host in ["main.test", "web.test", "a.test", "b.test", "x.test"] {
            let entry = try #require(snapshot.entry(for: host, port: 443), "\(host)")
            #expect(entry.policy.mode == .publicKey)
            #expect(entry.policy.requirements.minimumTLS == .tls13, "the defaults of the main file hold for \(host)")
        }
        #expect(snapshot.entry(for: "x.test", port: 443)?.location.hasSuffix("pins/hosts.d/10-x.yaml:2") == true)
    }

    /// Paths in a file are relative to it, and so are the pins' files.
    @Test func pathsAreRelativeToTheirFile() throws {
        let bed = try ConfigurationBed(
            pins: "hosts: []\n",
            ["pins/hosts.d/a.yaml": "hosts:\n  - {match: a.test, pinning: certificate, pins: [{file: own.pem}]}\n"])
        #expect(bed.problems().contains { $0.hasPrefix("pins/hosts.d/a.yaml:2") && $0.contains("own.pem") })
        try bed.write(
            "pins/hosts.d/own.pem", Array(try String(contentsOfFile: bed.path("ca.pem"), encoding: .utf8).utf8))
        #expect(try bed.load().entry(for: "a.test", port: 443)?.policy.mode == .certificate)
    }

    @Test(arguments: [
        (
            ["pins/hosts.d/a.yaml": "hosts:\n  - {match: MAIN.test, action: tunnel}\n"],
            "pins/hosts.d/a.yaml:2:13: error: match: main.test already has the entry in pins/hosts.yaml:2"
        ),
        (
            ["pins/hosts.d/a.yaml": "defaults: {action: tunnel}\nhosts: []\n"],
            "pins/hosts.d/a.yaml:1:11: error: \"defaults\" belongs in the main pin file, pins/hosts.yaml"
        ),
        (
            ["pins/hosts.d/a.yaml": "include: b.yaml\nhosts: []\n"],
            "pins/hosts.d/a.yaml:1:10: error: \"include\" belongs in the main pin file, pins/hosts.yaml"
        ),
        (
            ["pins/hosts.d/a.yaml": ""],
            "pins/hosts.d/a.yaml:1:1: error: the file is empty; write \"hosts: []\" if nothing is to be pinned"
        ),
        (
            ["pins/hosts.d/a.yml": "hosts: []\n"],
            "pins/hosts.d/a.yml: warning: ignored: the name doesn't end in .yaml"
        ),
        (["pins/hosts.d": "a file"], "pins/hosts.d: error: the directory can't be read: Not a directory"),
    ])
    func whatIsWrongIsSaid(_ files: [String: String], _ problem: String) throws {
        let bed = try ConfigurationBed(pins: "hosts:\n  - {match: main.test, action: tunnel}\n", files)
        #expect(bed.problems().contains(problem), "\(bed.problems())")
    }

    @Test(arguments: [
        ("nothing.yaml", "pins/nothing.yaml can't be read: No such file or directory"),
        ("none/*.yaml", "include: pins/none/*.yaml names no file"),
        ("hosts.yaml", "include: pins/hosts.yaml is read already"),
        ("hosts.d/*.yaml", "pins/hosts.d/a.yaml is read already"),
        ("https://example.com/x.yaml", "\"https://example.com/x.yaml\" is a URL, not a path"),
        ("''", "the path is empty"),
    ])
    func includesThatAreWrong(_ include: String, _ problem: String) throws {
        let bed = try ConfigurationBed(
            pins: "include: \(include)\nhosts: []\n", ["pins/hosts.d/a.yaml": entry("a.test")])
        #expect(bed.problems().contains { $0.contains("error") && $0.contains(problem) }, "\(bed.problems())")
    }

    @Test(arguments: [0, 1]) func theirNumberIsBounded(over: Int) throws {
        var files: [String: String] = [:]
        for number in 0..<FurtherPinFiles.limit + over { files["pins/hosts.d/\(number).yaml"] = "hosts: []\n" }
        let problems = try ConfigurationBed(pins: "hosts: []\n", files).problems()
        #expect(problems.contains { $0.contains("201 further pin files; at most 200") } == (over == 1), "\(problems)")
    }

    @Test func aFileThatIsAddedOrRemovedIsNoticed() throws {
        let bed = try ConfigurationBed(pins: "hosts: []\n", ["pins/hosts.d/a.yaml": entry("a.test")])
        let snapshot = try bed.load()
        let isCurrent = { snapshot.listings.allSatisfy(\.isCurrent) }
        #expect(isCurrent())
        try bed.write("pins/hosts.d/a.yaml.swp", [])
        #expect(isCurrent(), "an editor's own file changes nothing")
        try bed.write("pins/hosts.d/b.yaml", Array(entry("b.test").utf8))
        #expect(!isCurrent())
        #expect(throws: ConfigurationFilesProblem.self) { try snapshot.copyFiles(limit: 1 << 20) }
        try FileManager.default.removeItem(atPath: bed.path("pins/hosts.d/b.yaml"))
        #expect(isCurrent())
        try FileManager.default.removeItem(atPath: bed.path("pins/hosts.d"))
        #expect(!isCurrent())
    }

    /// A start from the kept copy has all files, whatever happened to the directory.
    @Test func copiesHaveAllFiles() throws {
        let bed = try ConfigurationBed(
            pins: "include: more.yaml\nhosts: []\n",
            ["pins/more.yaml": entry("more.test"), "pins/hosts.d/a.yaml": entry("a.test")])
        let copies = try bed.load().copyFiles(limit: 1 << 20)
        try bed.write("pins/hosts.d/b.yaml", Array(entry("b.test").utf8))
        try FileManager.default.removeItem(atPath: bed.path("pins/hosts.d/a.yaml"))
        let kept = try Snapshot.load(bed.path("pinproxy.yaml"), from: copies, stateDirectory: bed.path("state"))
        #expect(kept.entry(for: "a.test", port: 443) != nil)
        #expect(kept.entry(for: "more.test", port: 443) != nil)
        #expect(kept.entry(for: "b.test", port: 443) == nil)
    }
}
