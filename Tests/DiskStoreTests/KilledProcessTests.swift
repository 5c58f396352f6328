import Foundation
import PinproxyDiskStore
import PinproxyTLS
import Testing

/// A process that stores, replaces, evicts and purges is killed a hundred times (Tests/StoringProbe).
@Suite struct KilledProcessTests {
    private static let limit: UInt64 = 3 << 20

    /// It is killed after some lines: while it opens the store, verifies it, or makes its next change. In some rounds
    /// it has a body that is not committed.
    @Test func aHundredKillsLeaveNothingWrong() throws {
        let bed = StoreBed()
        var (records, swept) = (0, 0)
        for round in 0..<100 {
            let lines = try Self.run(
                bed.directory, seed: round + 1,
                killed: round % 9 == 8 ? .holding : .after([1, 2, 10, 40][round % 4] + round % 7))
            for line in lines where line.hasPrefix("event") {
                // Its pages are never torn, and leftovers of a kill are swept.
                #expect(!line.contains("begunAnew") && !line.contains("damaged"), "round \(round): \(line)")
                if line.contains("swept") { swept += 1 }
            }
            guard let opened = lines.first(where: { $0.hasPrefix("opened") }) else { continue }
            let numbers = opened.split(separator: " ").compactMap { Int($0) }
            try #require(numbers.count == 3, "\(opened)")
            records = max(records, numbers[0])
            #expect(numbers[0] == numbers[1] && numbers[2] == 0, "round \(round): \(opened)")
            // The index's log comes on top.
            #expect(bed.size < Self.limit + 8 << 20)
        }
        // There was something to lose.
        #expect(records > 20 && swept > 0, "\(records) records, \(swept) sweeps")
        let store = try bed.open(limit: Self.limit)
        let kept = (0..<40).flatMap { store.records(of: SHA256Digest.of(Array("\($0)".utf8))) }
        #expect(kept.count == store.status.records && bed.bodies.count == kept.count { $0.length > 8192 })
        #expect(store.status.bytes <= Self.limit)
    }

    private enum Moment {
        case after(_ lines: Int)
        case holding

        func hasCome(_ text: Data) -> Bool {
            switch self {
            case .after(let lines): text.count(where: { $0 == UInt8(ascii: "\n") }) >= lines
            case .holding: text.suffix(9) == Data("\nholding\n".utf8)
            }
        }
    }

    /// - Returns: all its output.
    private static func run(_ directory: String, seed: Int, killed moment: Moment) throws -> [String] {
        let process = Process()
        process.executableURL = URL(filePath: probe)
        process.arguments = [directory, "\(limit)", "\(seed)"]
        if case .holding = moment { process.arguments?.append("holding") }
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let handle = output.fileHandleForReading
        var text = Data()
        while !moment.hasCome(text) {
            let part = handle.availableData
            if part.isEmpty { break }
            text += part
        }
        kill(process.processIdentifier, SIGKILL)
        text += (try handle.readToEnd()) ?? Data()
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL)
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private static let probe: String = {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return (tests as NSString).deletingLastPathComponent + "/PinproxyStoringProbe"
    }()
}
