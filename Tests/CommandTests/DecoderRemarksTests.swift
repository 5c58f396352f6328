import Foundation
import PinproxyConfiguration
import Testing

@testable import PinproxySerialization
@testable import pinproxy

/// What `check` says about rules with missing decoders. Tests/System tests this with packages.
@Suite struct DecoderRemarksTests {
    private static let pins = """
        hosts:
          - {match: a.test, response: {serializer: json}}
          - {match: b.test, response: {serializer: [json, image]}}
          - {match: c.test, rules: [{path: /x, response: {serializer: image}}]}

        """

    private func problems(_ pins: String = pins) throws -> (problems: [String], asked: [ResponseRules.Serializer]) {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", pins)
        let snapshot = try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.path("state"))
        var asked: [ResponseRules.Serializer] = []
        let problems = DecoderRemarks.problems(in: snapshot) { serializer in
            asked.append(serializer)
            guard serializer == .image else { return [] }
            return [.init(format: "GIF", package: "libgif7"), .init(format: "AVIF", package: "libavif15")]
        }
        return (problems.map { $0.description.replacingOccurrences(of: bed.directory + "/", with: "") }, asked)
    }

    @Test func theyNameWhatIsRefusedAndWhatToInstall() throws {
        let (problems, asked) = try problems()
        #expect(
            problems == [
                "pins.yaml:3:44: warning: serializer: image refuses GIF, AVIF, here and in 1 other place: what decodes "
                    + "it is not installed (apt install libgif7 libavif15)"
            ])
        #expect(asked == [.json, .image])
    }

    @Test func nothingIsAskedForWithoutARule() throws {
        let (problems, asked) = try problems("hosts: [{match: a.test}]\n")
        #expect(problems == [] && asked == [])
    }

    @Test func theDefaultsCountOnce() throws {
        let (problems, _) = try problems(
            "defaults: {response: {serializer: image}}\nhosts: [{match: a.test}, {match: b.test}]\n")
        #expect(
            problems.count == 1
                && problems[0].hasPrefix("pins.yaml:1:35: warning: serializer: image refuses GIF, AVIF: "),
            "\(problems)")
    }
}
