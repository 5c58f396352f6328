import Foundation
import PinproxyDaemon
import PinproxySession
import Testing

@testable import pinproxy

@Suite struct TaskTableTests {
    private func task(_ id: Int, _ more: String = "") throws -> TaskSummary {
        // A duplicate key may be read either way.
        let transactions = more.contains(#""transactions""#) ? "" : #", "transactions": []"#
        let json = """
            {"id": \(id), "kind": "exchange", "state": "running", "phase": "waiting for the response", "client": \
            "127.0.0.1:5", \
            "method": "GET", "host": "a.test", "port": 443, "path": "/x\\u001b[2J", "status": 0, "bytesUp": 100, \
            "bytesDown": 0, "age": 61.5\(transactions)\(more)}
            """
        return try JSONDecoder().decode(TaskSummary.self, from: Data(json.utf8))
    }

    private func table(_ tasks: [TaskSummary], width: Int = .max, height: Int = .max) -> [String] {
        TaskTable(TaskList(tasks: tasks, silentWorkers: []), width: width, height: height).text
            .components(separatedBy: "\n")
    }

    @Test func aTaskIsALine() throws {
        let lines = table([try task(7, #", "protocol": "h2", "stream": 5"#), try task(4711)])
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("ID    STATE"))
        #expect(lines[1].hasPrefix("7     running  1m1s  100 B  0 B"), "\(lines)")
        #expect(
            lines[1].hasSuffix("waiting for the response  h2         127.0.0.1:5  GET a.test:443/x\\u{1b}[2J"),
            "\(lines)")
        #expect(table([]) == ["no task is in flight"])
    }

    @Test(arguments: [
        ("", ""), (#", "protocol": "http/1.0""#, "http/1.0"),
        (
            #"""
            , "protocol": "h2", "transactions": [{"remoteAddress": "", "networkProtocol": "h2", "reused": false, \#
            "began": 0}]
            """#,
            "h2 > h2"
        ),
        (
            #", "protocol": "http/1.1", "transactions": [{"remoteAddress": "", "networkProtocol": "h2", "reused": "#
                + #"false, "began": 0}, "#
                + #"{"remoteAddress": "", "networkProtocol": "http/1.1", "reused": false, "began": 0}]"#,
            "http/1.1 > http/1.1"
        ),
    ]) func bothSidesHaveAProtocol(more: String, shown: String) throws { #expect(try task(1, more).protocols == shown) }

    @Test func itFitsItsTerminal() throws {
        let tasks = try (1...50).map { try task($0) }
        let lines = table(tasks, width: 60, height: 10)
        #expect(lines.count == 9 && lines.allSatisfy { $0.count <= 60 }, "\(lines)")
        #expect(lines.last == "and 43 more")
        #expect(table(tasks, height: 51).count == 51)
    }

    /// At 80 columns the request is readable, and everything that fits stays.
    @Test func theRequestIsShownOnANarrowTerminal() throws {
        let tasks = [try task(4711, #", "protocol": "http/1.1""#)]
        let narrow = table(tasks, width: 80)
        #expect(narrow[0].split(separator: " ") == ["ID", "STATE", "AGE", "DOWN", "PROGRESS", "REQUEST"], "\(narrow)")
        #expect(narrow[1].hasSuffix("GET a.test:443/x\\u{1b}[2J"), "\(narrow)")
        #expect(narrow.allSatisfy { $0.count <= 80 })
        #expect(table(tasks, width: 200)[0] == table(tasks)[0])
    }

    @Test(
        arguments: [
            (nil, 50, 200, "waiting for the response"), (200, 100, 200, "[#####-----] 50%"),
            (200, 0, 200, "[----------] 0%"),
            (200, 300, 200, "[##########] 100%"), (0, 300, 200, "waiting for the response"),
        ] as [(UInt64?, UInt64, Int, String)]) func aBarShowsTheShare(
            total: UInt64?, done: UInt64, status: Int, shown: String
        ) throws
    {
        var summary = try task(1)
        summary.totalDown = total
        summary.bytesDown = done
        summary.status = status
        #expect(TaskTable.progress(summary) == shown)
    }

    @Test func anUploadIsMeasuredUntilThereIsAResponse() throws {
        var summary = try task(1)
        summary.totalUp = 400
        #expect(TaskTable.progress(summary) == "[##--------] 25%")
        summary.status = 200
        #expect(TaskTable.progress(summary) == "waiting for the response")
    }

    @Test(
        arguments: [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1 << 20, "1.0 MiB"), (5 << 40, "5120.0 GiB")]
            as [(UInt64, String)])
    func bytesAreReadable(count: UInt64, text: String) { #expect(AmountText.bytes(count) == text) }
}
