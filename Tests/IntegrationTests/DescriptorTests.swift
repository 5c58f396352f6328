import Foundation
import Testing

/// Whatever a client or an origin does, the proxy ends with as many descriptors open as before.
@Suite(.timeLimit(.minutes(5)))
struct DescriptorTests {
    private static let sections: ProxyProcess.Sections = [
        "timeouts": ["idle_client: 2s", "idle_upstream: 1s"]
    ]

    enum Mischief: String, CaseIterable, Sendable {
        case connectsAndLeaves, leavesWithinTheHead, resetsAfterConnect, resetsWithinTheHandshake,
            vanishesWithinADownload, vanishesWithinAnUpload, isRefused, isTruncated, upgradesAndLeaves, works
    }

    @Test(arguments: Mischief.allCases)
    func nothingLeaks(_ mischief: Mischief) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: Self.sections)
            // The first exchange opens what is kept for good: resolver, event descriptors.
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            let origin = try #require(shared.origin)
            _ = try await origin.events.first("closed")
            var before = Int.max
            try await eventually("the clients of the first exchange to be gone") {
                before = try shared.proxy.openDescriptors()
                return try shared.proxy.openSockets() == 1
            }
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 1...20 { group.addTask { try await perform(mischief, shared) } }
            }
            try await eventually("descriptors to be closed after \(mischief)") {
                try shared.proxy.openDescriptors() <= before
            }
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
        }
    }

    private func perform(_ mischief: Mischief, _ shared: SharedBed) async throws {
        let connection = try RawConnection(to: shared.proxy)
        let connect = "CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n"
        switch mischief {
        case .connectsAndLeaves:
            break
        case .leavesWithinTheHead:
            try await connection.send(String(connect.dropLast(5)))
        case .resetsAfterConnect:
            try await connection.resetOnClose()
            try await connection.send(connect)
        case .resetsWithinTheHandshake:
            try await connection.resetOnClose()
            try await connection.send(connect)
            #expect(try await connection.response().status == 200)
            try await connection.send("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}")
        case .vanishesWithinADownload:
            try await connection.resetOnClose()
            try await connection.send(
                "GET \(shared.plainURL)/large/50000000 HTTP/1.1\r\nHost: origin.test:\(shared.secondOriginPort)\r\n\r\n"
            )
            _ = try await connection.receive()
        case .vanishesWithinAnUpload:
            try await connection.send(
                "POST \(shared.plainURL)/echo HTTP/1.1\r\nHost: origin.test:\(shared.secondOriginPort)\r\n"
                    + "Content-Length: 50000000\r\n\r\n" + String(repeating: "x", count: 100_000))
        case .isRefused:
            try await connection.send("CONNECT nowhere.onion:1 HTTP/1.1\r\nHost: nowhere.onion:1\r\n\r\n")
            #expect(try await connection.response().status == 502)
        case .isTruncated:
            _ = try await shared.curl(shared.url + "/truncated/length")
        case .upgradesAndLeaves:
            try await connection.send(
                "GET \(shared.plainURL)/upgrade HTTP/1.1\r\nHost: origin.test:\(shared.secondOriginPort)\r\n"
                    + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            #expect(try await connection.response().status == 101)
        case .works:
            #expect(try await shared.curl(shared.url + "/large/100000").succeeded)
        }
    }
}
