import Foundation
import PinproxyTestAuthority
import Testing

/// What the log says about pins that expire.
@Suite(.timeLimit(.minutes(5)))
struct PinExpiryTests {
    private func day(_ days: Int) -> String {
        Date(timeIntervalSinceNow: TimeInterval(days) * 86_400).formatted(.iso8601.year().month().day())
    }

    private func pins(_ host: String, expires: Int) -> String {
        """
        hosts:
          - match: \(host)
            pinning: public-key
            pins: [\(String.wrongPin)]
            expires: \(day(expires))

        """
    }

    @Test func isSaidAtTheStartAndAfterEachReload() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, pins: pins("soon.test", expires: 10), trust: nil)
            let event = try await proxy.events.first("pin.expiring")
            #expect(event["entry"] == "soon.test")
            #expect(event["location"] == bed.path("proxy/pins.yaml") + ":2")
            #expect(event["date"] == day(10))
            // Ten days to the beginning of that day.
            #expect(event["days_left"] == "9")
            #expect(event["level"] == "warning")
            #expect(event["what"] == "entry")
            try bed.file("proxy/pins.yaml", pins("late.test", expires: 40))
            try await proxy.reload()
            try bed.file("proxy/pins.yaml", pins("past.test", expires: -1))
            try await proxy.reload()
            let past = try await proxy.events.first("pin.expiring") { $0["entry"] == "past.test" }
            #expect(past["days_left"] == "-2")
            #expect(proxy.events.all("pin.expiring").map { $0["entry"] } == ["soon.test", "past.test"])
        }
    }
}
