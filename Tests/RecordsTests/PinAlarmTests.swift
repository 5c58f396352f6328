import Foundation
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import Testing

@testable import PinproxyRecords

/// How failed pins are recorded and counted.
@Suite struct PinAlarmTests {
    /// A refusal.
    private func record(
        isPinFailure: Bool, host: String = "a.test", slot: Int = 2, status: Int? = nil, cause: String? = nil
    ) -> TaskRecord {
        var record = TaskRecord()
        record.began(number: 1, at: MonotonicTime(nanoseconds: 0))
        record.authority = try? Authority.parse(host, defaultPort: 443).get()
        record.entrySlot = slot
        record.refused(
            TaskRecord.Refusal(
                status: status ?? (isPinFailure ? 502 : 403), cause: cause ?? (isPinFailure ? "no pin" : "denied"),
                errorType: isPinFailure ? "tls_certificate_error" : "http_request_denied", isPinFailure: isPinFailure))
        return record
    }

    @Test func failuresOfPinsHaveRoomOfTheirOwn() {
        var recent = RecentEvents(worker: 0)
        recent.note(record(isPinFailure: true), at: 1)
        for time in 2...301 as ClosedRange<Int64> { recent.note(record(isPinFailure: false), at: time) }
        #expect(recent.all.count == RecentEvents.capacity + 1)
        #expect(recent.all.filter(\.isPinFailure).map(\.number) == [1])
        // Nor do they evict the others, and their number is limited.
        for time in 302...601 as ClosedRange<Int64> { recent.note(record(isPinFailure: true), at: time) }
        #expect(recent.all.count == 2 * RecentEvents.capacity)
        #expect(recent.all.filter { !$0.isPinFailure }.map(\.number).max() == 301)
        #expect(recent.all.map(\.number).max() == 601)
    }

    @Test func hostsThatFailAllTheTimePushNoOtherHostOut() {
        var recent = RecentEvents(worker: 0)
        recent.note(record(isPinFailure: true, host: "once.test"), at: 1)
        for time in 2...301 as ClosedRange<Int64> {
            recent.note(record(isPinFailure: true, host: "often\(time % 3).test"), at: time)
        }
        #expect(recent.all.count == RecentEvents.capacity)
        #expect(recent.all.contains { $0.host == "once.test" })
        #expect(recent.all.map(\.number).max() == 301)
        // Nor from a list.
        let shown = recent.all.sorted { $0.number > $1.number }.latest(10)
        #expect(shown.count == 10 && shown.last?.host == "once.test")
        // Only so many hosts are kept: the oldest is evicted.
        for time in 400..<500 as Range<Int64> {
            recent.note(record(isPinFailure: true, host: "h\(time).test"), at: time)
        }
        #expect(recent.all.count == RecentEvents.capacity)
        #expect(Set(recent.all.map(\.host)).count == RecentEvents.capacity)
    }

    @Test func trialsAreNeitherKeptNorCounted() {
        var recent = RecentEvents(worker: 0)
        let trial = record(isPinFailure: true, slot: EntrySlots.uncounted)
        recent.note(trial, at: 1)
        #expect(recent.all.isEmpty)
        var counters = WorkerCounters()
        counters.count(trial, now: MonotonicTime(nanoseconds: 1))
        counters.countClientHandshake(isResumed: nil, at: EntrySlots.uncounted)
        #expect(counters.entries.isEmpty && counters.refusals.isEmpty && counters.clientHandshakeFailures == 0)
    }

    @Test(arguments: [
        (1, 300, 100, 1), (80, 300, 100, 50), (80, 10, 100, 80), (300, 0, 100, 100), (0, 300, 100, 0), (1, 1, 0, 0),
    ])
    func theLatestAreChosenWithRoomForPins(pins: Int, others: Int, limit: Int, shown: Int) {
        // The pin failures came first, so they are last in the list.
        let events = (0..<(pins + others)).map { place in
            RecentEvent(
                number: UInt64(1000 - place), worker: 0, time: Int64(1000 - place), kind: .refused, client: nil,
                method: "", host: "",
                port: nil, entry: nil, status: 0, error: nil, cause: "", story: nil,
                pinFailure: place >= others ? true : nil)
        }
        let latest = events.latest(limit)
        #expect(latest.count == min(limit, pins + others))
        #expect(latest.count(where: \.isPinFailure) == shown)
        #expect(latest.map(\.number) == latest.map(\.number).sorted(by: >))
    }

    @Test func equalEventsAreOneGroupWhateverTheirClientsAndProcesses() {
        var recent = RecentEvents(worker: 0)
        func note(_ cause: String, host: String = "a.test", status: Int = 403, at time: Int64) {
            recent.note(record(isPinFailure: false, host: host, status: status, cause: cause), at: time)
        }
        for time in 1...5 as ClosedRange<Int64> {
            note("user 7, process 10\(time) (/usr/bin/curl), may not ask for it", at: time)
        }
        note("user 8, process 101 (/usr/bin/curl), may not ask for it", at: 6)
        note("user 7, process 101 (/usr/bin/wget), may not ask for it", at: 7)
        note("user 7, process 101 (/usr/bin/curl), may not ask for it", host: "b.test", at: 8)
        note("user 7, process 101 (/usr/bin/curl), may not ask for it", status: 407, at: 9)
        note("within 10 seconds", at: 10)
        note("within 20 seconds", at: 11)
        recent.note(record(isPinFailure: true), at: 12)
        let groups = recent.all.sorted { $0.time > $1.time }.grouped
        #expect(groups.map(\.latest.time) == [12, 11, 10, 9, 8, 7, 6, 5])
        #expect(groups.map(\.count) == [1, 1, 1, 1, 1, 1, 1, 5])
        #expect(groups.last?.first == 1)
        // Those of an earlier version of the proxy don't have the field.
        let plain = recent.all.map { event in
            var event = event
            event.group = nil
            return event
        }
        #expect(plain.grouped.count == 12 && [RecentEvent]().grouped.isEmpty)
    }

    // MARK: The last hour

    private func counters(missed: UInt64) -> WorkerCounters {
        var counters = WorkerCounters()
        for _ in 0..<missed { counters.count(.missed, at: 2) }
        return counters
    }

    @Test func theLastHourIsCountedByTheMinute() {
        var history = HitHistory()
        func missed(_ total: UInt64) -> UInt64 {
            history.lastHour(counters(missed: total), ["", "", "a.test"]).pinsMissed
        }
        // Before the first minute has passed.
        #expect(missed(3) == 3)
        var total: UInt64 = 0
        for minute in 1...200 as ClosedRange<UInt64> {
            total += 1
            history.note(counters(missed: total))
            // The last 59 whole minutes, and the current one.
            #expect(missed(total + 5) == min(minute, 59) + 5)
        }
        // A failure that has stopped is forgotten after an hour.
        for _ in 1...59 { history.note(counters(missed: total)) }
        #expect(missed(total) == 0)
        #expect(history.lastHour(counters(missed: total), []).pinFailures.isEmpty)
        #expect(missed(total + 1) == 1)
    }

    @Test func failuresAreToldByEntryTheMostOfThemFirst() {
        var counters = WorkerCounters()
        for slot in 1...150 { for _ in 0..<slot { counters.count(.missed, at: slot) } }
        for _ in 0..<900 { counters.count(.reported, at: 151) }
        let hour = HitHistory().lastHour(counters, ["(defaults)", "(others)"] + (2...149).map { "e\($0).test" })
        #expect(hour.pinFailures.count == LastHour.entryLimit)
        #expect(hour.pinFailures.prefix(2).map(\.missed) == [150, 149] && hour.pinFailures[1].entry == "e149.test")
        // An entry that has no name yet.
        #expect(hour.pinFailures[0].entry == "(others)")
        #expect(hour.pinsMissed == 150 * 151 / 2 && hour.pinsReported == 900)
    }

    // MARK: Labels

    private static let registered: Set<String> = [
        "dns_timeout", "dns_error", "destination_not_found", "destination_unavailable", "destination_ip_prohibited",
        "destination_ip_unroutable", "connection_refused", "connection_terminated", "connection_timeout",
        "connection_read_timeout", "connection_write_timeout", "connection_limit_reached", "tls_protocol_error",
        "tls_certificate_error", "tls_alert_received", "http_request_error", "http_request_denied",
        "http_response_incomplete", "http_response_header_section_size", "http_response_header_size",
        "http_response_body_size", "http_response_trailer_section_size", "http_response_trailer_size",
        "http_response_transfer_coding", "http_response_content_coding", "http_response_timeout", "http_upgrade_failed",
        "http_protocol_error", "proxy_internal_response", "proxy_internal_error", "proxy_configuration_error",
        "proxy_loop_detected",
    ]

    /// Each error type in the sources has a series from the start, and no other has.
    @Test func everyErrorTypeIsKnownInAdvance() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        var written: Set<String> = []
        for room in ["Clients", "Daemon", "Records", "Session"] {
            let folder = root.appendingPathComponent("Sources/\(room)")
            for file in try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            where file.hasSuffix(".swift") && !file.hasSuffix("RefusalErrors.swift") {
                let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
                written.formUnion(text.matches(of: /"([a-z_]+)"/).map { String($0.1) }.filter(Self.registered.contains))
            }
        }
        #expect(Set(RefusalErrors.all) == written)
        #expect(Set(RefusalErrors.all).count == RefusalErrors.all.count)
    }
}
