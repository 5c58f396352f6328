import Foundation
import Logging
import Testing

@testable import PinproxyRecords

/// MESSAGE_ID= of the journal's records.
@Suite struct JournalMessageIDTests {
    private static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    private func fields(_ write: (inout EventLineWriter) -> Void) -> [String] {
        var writer = EventLineWriter(format: .journal)
        write(&writer)
        writer.end()
        let (bytes, fields) = JournalRecord.fields(of: writer.bytes.dropFirst().dropLast())
        return fields.map { String(decoding: bytes[$0], as: UTF8.self) }
    }

    @Test func anEventThatPeopleMatchOnHasOne() throws {
        let fields = fields {
            $0.begin(event: "pin.mismatch", level: .warning)
            $0.field("host", "api.test")
        }
        let id = try #require(JournalMessageID.all["pin.mismatch"])
        #expect(fields.contains("MESSAGE_ID=\(id)") && fields.contains("PINPROXY_EVENT=pin.mismatch"), "\(fields)")
        #expect(fields.filter { $0.hasPrefix("MESSAGE_ID=") }.count == 1)
        #expect(fields.contains("PINPROXY_HOST=api.test") && fields.contains("PRIORITY=4"), "\(fields)")
    }

    @Test func anotherEventHasNoneWhateverItsValuesSay() {
        let fields = fields {
            $0.begin(event: "exchange", level: .info)
            $0.field("path", "/PINPROXY_EVENT=pin.mismatch")
            $0.field("event_", "pin.mismatch")
        }
        #expect(!fields.contains { $0.hasPrefix("MESSAGE_ID=") }, "\(fields)")
    }

    @Test func theDocumentationAndTheCatalogHaveTheSame() throws {
        let page = try String(contentsOfFile: Self.repository + "/docs/log.md", encoding: .utf8)
        let documented = page.matches(of: /(?m)^\| `([a-z.]+)` \| `([0-9a-f]{32})` \|$/).map {
            (String($0.output.1), String($0.output.2))
        }
        #expect(Dictionary(documented) { first, _ in first } == JournalMessageID.all)
        #expect(documented.count == JournalMessageID.all.count)
        let events = Set(
            page.matches(of: /(?m)^\| (`[a-z.`, ]+`) \| [a-z, ]+ \|/).flatMap {
                $0.output.1.matches(of: /`([a-z.]+)`/).map { String($0.output.1) }
            })
        #expect(Set(JournalMessageID.all.keys).subtracting(events) == [], "events that don't exist")
        let catalog = try String(contentsOfFile: Self.repository + "/systemd/pinproxy.catalog", encoding: .utf8)
        let ids = catalog.matches(of: /(?m)^-- ([0-9a-f]{32})$/).map { String($0.output.1) }
        #expect(ids.sorted() == JournalMessageID.all.values.sorted())
        #expect(Set(ids).count == ids.count)
        #expect(JournalMessageID.all["exchange"] == nil)
    }

    /// A variable for a field that the event doesn't have would be shown as its bare name.
    @Test func theCatalogNamesFieldsOfItsEvents() throws {
        let catalog = try String(contentsOfFile: Self.repository + "/systemd/pinproxy.catalog", encoding: .utf8)
        let sources = try ["Clients", "Daemon", "Records"].flatMap { room in
            let folder = Self.repository + "/Sources/\(room)/"
            return try FileManager.default.subpathsOfDirectory(atPath: folder)
                .filter { $0.hasSuffix(".swift") && !$0.hasSuffix("JournalMessageID.swift") }
                .map { try String(contentsOfFile: folder + $0, encoding: .utf8) }
        }
        for (event, id) in JournalMessageID.all {
            let entry = try #require(catalog.components(separatedBy: "-- ").first { $0.hasPrefix(id) })
            // Several events get the fields of client and origin from one place.
            let writers = sources.filter {
                $0.contains("\"\(event)\"") || $0.contains("package var fields: Logger.Metadata")
            }
            for variable in entry.matches(of: /PINPROXY_([A-Z_]+)/) {
                let field = "\"\(variable.output.1.lowercased())\""
                #expect(writers.contains { $0.contains(field) }, "\(event) has no field \(field)")
            }
        }
    }
}
