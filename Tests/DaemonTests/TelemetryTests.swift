import PinproxySecurity
import Testing

@testable import PinproxyDaemon
@testable import PinproxyRecords

/// What a collector's answers mean, and which figures are sent to it.
@Suite struct TelemetryTests {
    private static let now: Int64 = 1_893_456_000

    private func answer(
        _ status: Int, _ body: [UInt8] = [], type: String? = "application/x-protobuf", retryAfter: String? = nil
    ) -> CollectorAnswer {
        CollectorAnswer(status: status, type: type, retryAfter: retryAfter, body: body, at: Self.now)
    }

    @Test func whatTheCollectorTook() {
        for status in [200, 202, 204] { #expect(answer(status) == .taken(nil)) }
        // An empty partial success, and unknown fields.
        for body: [UInt8] in [[0x0A, 0x00], [0x0A, 0x02, 0x08, 0x00], [0x10, 0x07], [0x0A, 0x02, 0x18, 0x07]] {
            #expect(answer(200, body) == .taken(nil))
        }
        #expect(answer(200, Array("{}".utf8), type: "application/json; charset=utf-8") == .taken(nil))
    }

    @Test func partOfItMayBeRejected() {
        let words = Array("too old".utf8)
        let body: [UInt8] = [0x0A, 0x0B, 0x08, 0x07, 0x12, 0x07] + words
        #expect(answer(200, body) == .taken(.init(count: 7, message: "too old")))
        // Only a warning.
        #expect(answer(200, [0x0A, 0x09, 0x12, 0x07] + words) == .taken(.init(count: 0, message: "too old")))
        let negative: [UInt8] = [0x0A, 0x0E, 0x08] + Array(repeating: 0xFF, count: 9) + [0x01, 0x12, 0x01, 0x78]
        #expect(answer(200, negative) == .taken(.init(count: 0, message: "x")))
        let long = Array(repeating: UInt8(ascii: "x"), count: 600)
        guard case .taken(let found?) = answer(200, [0x0A, 0xDB, 0x04, 0x12, 0xD8, 0x04] + long) else {
            Issue.record("nothing is said")
            return
        }
        #expect(found.count == 0 && found.message.utf8.count == 500)
    }

    @Test(arguments: ["<html>", "{}", "OK", "\u{0}", "\n\u{7F}x", "\u{8}\u{1}", "\n\u{1}x"])
    func whatIsNoAnswerOfACollector(_ body: String) {
        for type in ["text/html", "application/x-protobuf", nil] {
            #expect(
                answer(200, Array(body.utf8), type: type)
                    == .refused(cause: "it answered 200 with something other than OTLP: is it a collector?"))
        }
    }

    @Test func onlySomeFailuresAreTriedAgain() {
        for status in [429, 502, 503, 504] {
            #expect(answer(status, Array("<html>".utf8)) == .later(cause: "it answered \(status)", after: nil))
        }
        for status in [301, 400, 401, 404, 413, 500, 501] {
            #expect(answer(status) == .refused(cause: "it answered \(status)"))
        }
        for (field, seconds) in [
            ("30", 30), ("0", 0), ("86400", 3600), ("99999999999999999999", nil), ("soon", nil),
            ("Tue, 01 Jan 2030 00:01:00 GMT", 60),
        ] as [(String, Int64?)] {
            #expect(
                answer(503, retryAfter: field)
                    == .later(cause: "it answered 503", after: seconds.map { .seconds($0) }), "\(field)")
        }
    }

    @Test func failuresSlowItDownToFiveMinutes() {
        var pace = ServicePace(interval: .seconds(60), longest: .seconds(300))
        #expect(pace.pause(0.5) == .seconds(60))
        for pause in [10, 20, 40, 80, 160, 300, 300] {
            pace.failed()
            #expect(pace.pause(0.5) == .seconds(pause))
        }
    }

    @Test func aMachineKeepsItsName() {
        func instance(_ machine: String, _ directory: String = "/var/lib/pinproxy") -> String {
            OTLPDocument.Resource.instance(machine: machine, stateDirectory: directory)
        }
        let machine = "0123456789abcdef0123456789abcdef"
        #expect(instance(machine) == instance(machine))
        #expect(
            instance(machine).wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/)
                != nil)
        #expect(Set([instance(machine), instance("other"), instance(machine, "/var/lib/other")]).count == 3)
    }

    // MARK: Figures

    /// Points of the family as `entry result value at time`.
    private func checks(_ names: [String], _ counters: WorkerCounters, _ entries: inout NamedEntries) -> [String] {
        var daemon = MetricsReport.Daemon()
        daemon.entryNames = ["(defaults)", "(others)"] + names
        let worker = WorkerMeasurement(counters: counters, lag: 0)
        let report = MetricsReport(daemon: daemon, measurement: ProxyMeasurement(workers: [worker], silent: []))
        var metrics = OTLPMetrics(start: 1, time: 2)
        FleetMetrics(report: report).write(to: &metrics, &entries)
        let bytes = metrics.finished(OTLPDocument.Resource(attributes: [], version: "0"))
        #expect(bytes.count < 64 << 10)
        return Self.points(of: "pinproxy_pin_checks", in: bytes[...])
    }

    private static func messages(_ number: UInt64, in bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var reader = ProtobufReader(bytes)
        var found: [ArraySlice<UInt8>] = []
        while let field = reader.next() {
            if field.number == number, case .bytes(let bytes) = field.value { found.append(bytes) }
        }
        return found
    }

    private static func points(of name: String, in request: ArraySlice<UInt8>) -> [String] {
        let metrics = messages(1, in: request).flatMap { messages(2, in: $0) }.flatMap { messages(2, in: $0) }
        let family = metrics.first { messages(1, in: $0).first.map { Array($0) } == Array(name.utf8) }
        let points = (family.map { messages(7, in: $0) } ?? []).flatMap { messages(1, in: $0) }
        return points.map { point in
            let labels = messages(7, in: point).flatMap { messages(2, in: $0) }.flatMap { messages(1, in: $0) }
            // Start, time and value: 8 bytes each, after a byte for the field.
            let numbers = [10, 19].map { point[point.startIndex + $0] }
            return (labels.map { String(decoding: $0, as: UTF8.self) } + ["\(numbers[1]) at \(numbers[0])"])
                .joined(separator: " ")
        }
    }

    /// Entries without a mismatch are summed. A named entry stays, and its series begins at 0.
    @Test func onlyEntriesWithMismatchesAreNamed() {
        var counters = WorkerCounters()
        for slot in [2, 3, 3] { counters.count(.matched, at: slot) }
        var entries = NamedEntries()
        let calm = ["(others) matched 3 at 2", "(others) missed 0 at 2", "(others) reported 0 at 2"]
        #expect(checks(["a.test", "b.test"], counters, &entries) == calm)
        entries.took(entries, at: 1)
        counters.count(.missed, at: 3)
        let found = checks(["a.test", "b.test"], counters, &entries)
        #expect(
            found == calm + [
                "b.test missed 0 at 1", "b.test missed 1 at 2", "b.test reported 0 at 1", "b.test reported 0 at 2",
            ])
        entries.took(entries, at: 1)
        #expect(
            checks(["a.test", "b.test"], counters, &entries) == calm + [
                "b.test missed 1 at 2", "b.test reported 0 at 2",
            ])
    }

    @Test func furtherEntriesShareASeriesAndAreCounted() {
        var counters = WorkerCounters()
        let names = (0..<130).map { "e\($0).test" }
        for slot in names.indices { counters.count(.reported, at: slot + 2) }
        var entries = NamedEntries()
        let found = checks(names, counters, &entries)
        #expect(found.contains("(others) reported 30 at 2"))
        #expect(found.count == 3 + 200)
        #expect(entries.omitted.count == 30)
        #expect(!found.contains { $0.contains("e129.test") })
    }

    @Test func deadPinsAreThoseOfEntriesThatMatch() {
        let day: Int64 = 86_400
        var history = PinHistory()
        var noted = false
        func dead() -> DeadPins? { history.entries["a"].flatMap { DeadPins(of: "a", $0, at: Self.now) } }
        let before = PinHistory.Configured(pins: ["backup", "alive", "old", "removed"])
        noted = history.note(entry: "a", before, at: Self.now - 40 * day)
        history.count(.matched(["old"]), for: "a", at: Self.now - 30 * day)
        #expect(noted && (dead() == nil), "no pin of it matches")
        noted = history.note(entry: "a", .init(pins: ["new"]), at: Self.now - 29 * day)
        history.count(.matched(["alive"]), for: "a", at: Self.now - day)
        #expect(noted && dead()?.matchedBefore == 1 && dead()?.neverMatched == 2)
        history.settle(at: Self.now) { _ in .init(pins: ["backup", "alive", "old", "new"]) }
        #expect(dead()?.matchedBefore == 1 && dead()?.neverMatched == 1)
        history.settle(at: Self.now) { _ in nil }
        #expect(dead() == nil)
    }
}
