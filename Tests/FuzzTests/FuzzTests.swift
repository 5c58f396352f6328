import Foundation
import PinproxyFuzzTargets
import Testing

/// Runs each committed input of `make fuzz` once. A target that finds an error ends the run.
@Suite struct FuzzTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fuzz")

    private static func files(_ kind: String, of target: String) -> [URL] {
        let folder = folder.appendingPathComponent(kind).appendingPathComponent(target)
        return (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
    }

    @Test(arguments: FuzzTarget.all.map(\.name))
    func committedInputsHoldWhatATargetStates(name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let corpus = Self.files("Corpus", of: name)
        #expect(!corpus.isEmpty, "\(name) has no seed in Tests/Fuzz/Corpus")
        for file in corpus + Self.files("Regressions", of: name) {
            // Printed first, since a trap ends the process.
            print("fuzz input \(name)/\(file.lastPathComponent)")
            target.run(Array(try Data(contentsOf: file)))
        }
        target.run([])
    }

    @Test(arguments: ["Corpus", "Regressions", "Dictionaries"])
    func inputsBelongToATarget(kind: String) throws {
        let entries = try FileManager.default.contentsOfDirectory(atPath: Self.folder.appendingPathComponent(kind).path)
        for entry in entries where !entry.hasPrefix(".") {
            #expect(FuzzTarget.named(entry) != nil, "Tests/Fuzz/\(kind)/\(entry) is no target's")
        }
    }

    @Test func namesOfTargetsDiffer() {
        #expect(Set(FuzzTarget.all.map(\.name)).count == FuzzTarget.all.count)
    }
}
