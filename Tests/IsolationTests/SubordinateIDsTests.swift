import PinproxyIsolation
import Testing

@Suite struct SubordinateIDsTests {
    @Test func linesOfTheUserAreTaken() {
        let text = "other:1:2\nann:100000:65536\n1001:300000:10\nann:200000:5\nanna:1:1\n"
        let ranges = SubordinateIDs.ranges(in: text, of: ["ann", "1001"])
        #expect(
            ranges == [
                .init(first: 100_000, count: 65536), .init(first: 300_000, count: 10), .init(first: 200_000, count: 5),
            ])
        #expect(SubordinateIDs.ranges(in: text, of: ["an"]).isEmpty)
    }

    @Test(arguments: [
        "", "ann", "ann:1", "ann:1:2:3", "ann:x:2", "ann:1:", "ann:-1:2", "ann:0:5", "ann:1:0", "ann: 1:2",
        "ann:4294967295:1", "ann:4294967296:1",
    ]) func whatIsNoLineIsLeftOut(_ line: String) {
        #expect(SubordinateIDs.ranges(in: line + "\nann:7:1\n", of: ["ann"]) == [.init(first: 7, count: 1)])
    }

    @Test func thereIsABound() {
        let text = (1...1000).map { "ann:\($0):1\n" }.joined()
        #expect(SubordinateIDs.ranges(in: text, of: ["ann"]).count == 32)
    }
}
