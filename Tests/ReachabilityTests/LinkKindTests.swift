import Foundation
import Testing

@testable import PinproxyReachability

@Suite struct LinkKindTests {
    struct Case: CustomTestStringConvertible {
        var type: UInt16 = 1
        var kind: String?
        var marks = LinkMarks()
        let expected: LinkKind

        var testDescription: String { "\(type) \(kind ?? "–") \(marks.deviceType ?? "–") is \(expected)" }
    }

    @Test(arguments: [
        Case(expected: .wired),
        Case(kind: "veth", expected: .wired),
        Case(kind: "dummy", expected: .wired),
        Case(kind: "bond", marks: LinkMarks(deviceType: "bond"), expected: .wired),
        Case(marks: LinkMarks(isWireless: true), expected: .wireless),
        Case(marks: LinkMarks(deviceType: "wlan"), expected: .wireless),
        Case(type: 801, expected: .wireless),
        Case(marks: LinkMarks(deviceType: "wwan"), expected: .cellular),
        Case(type: 519, marks: LinkMarks(deviceType: "wwan"), expected: .cellular),
        Case(type: 0xFFFE, kind: "wwan", expected: .cellular),
        Case(type: 519, kind: "rmnet", expected: .cellular),
        Case(kind: "bridge", marks: LinkMarks(deviceType: "bridge"), expected: .bridge),
        Case(type: 0xFFFE, kind: "wireguard", marks: LinkMarks(deviceType: "wireguard"), expected: .tunnel),
        Case(type: 0xFFFE, kind: "tun", expected: .tunnel),
        Case(kind: "tun", expected: .tunnel),
        Case(type: 512, expected: .tunnel),
        Case(type: 776, kind: "sit", expected: .tunnel),
        Case(type: 32, expected: .wired),
        Case(type: 280, expected: .other),
    ])
    func follows(_ one: Case) {
        #expect(LinkKind(isLoopback: false, hardwareType: one.type, kind: one.kind, marks: one.marks) == one.expected)
    }

    @Test func loopbackIsWhatTheKernelCallsSo() {
        #expect(LinkKind(isLoopback: true, hardwareType: 772, kind: nil, marks: LinkMarks()) == .loopback)
    }

    @Test func marksComeFromSysfs() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sysfs-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        for (path, text) in [
            ("wlan0/phy80211/x", ""), ("wlan0/uevent", "DEVTYPE=wlan\nINTERFACE=wlan0\nIFINDEX=3\n"),
            ("wlan1/wireless/x", ""), ("wwan0/uevent", "INTERFACE=wwan0\nDEVTYPE=wwan\n"),
            ("eth0/uevent", "INTERFACE=eth0\n"),
        ] {
            let file = folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        let reader = LinkMarksReader(folder: folder.path)
        #expect(reader.marks(of: "wlan0") == LinkMarks(isWireless: true, deviceType: "wlan"))
        #expect(reader.marks(of: "wlan1") == LinkMarks(isWireless: true))
        #expect(reader.marks(of: "wwan0") == LinkMarks(deviceType: "wwan"))
        #expect(reader.marks(of: "eth0") == LinkMarks())
        #expect(reader.marks(of: "gone0") == LinkMarks())
        #expect(reader.marks(of: "../\(folder.lastPathComponent)/wwan0") == LinkMarks())
    }
}
