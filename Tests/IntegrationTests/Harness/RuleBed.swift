import Foundation
import Testing

/// The Python origin as `origin.test`, with rules for some of its paths.
enum RuleBed {
    /// - Parameters:
    ///   - rules: the items of `rules`, each a line of YAML.
    ///   - extra: more lines of the entry.
    ///   - files: beside pins.yaml.
    static func prepare(
        _ bed: TestBed, rules: [String], extra: [String] = [], files: [String: String] = [:], hosts: String = "",
        names: [String: String] = [:], sections: ProxyProcess.Sections = ["limits": ["inspected_body: 256KiB"]],
        launcher: [String] = []
    ) async throws -> SharedBed {
        try await OriginBed.prepare(
            bed, pins: pins(rules: rules, extra: extra) + hosts, sections: sections, hosts: names,
            files: Dictionary(uniqueKeysWithValues: files.map { ("proxy/" + $0.key, $0.value) }), launcher: launcher)
    }

    static func pins(rules: [String], extra: [String] = []) -> String {
        let entry = ["hosts:", "  - match: \(OriginBed.name)"] + extra.map { "    " + $0 }
        let items = rules.isEmpty ? [] : ["    rules:"] + rules.map { "      - " + $0 }
        return (entry + items).joined(separator: "\n") + "\n"
    }

    /// A path that the origin answers with these bytes and the named rule matches.
    static func answer(_ rule: String, _ message: String) -> String { answer(rule, Array(message.utf8)) }

    static func answer(_ rule: String, _ message: [UInt8]) -> String { "/answer/\(rule)/" + encoded(message) }

    static func encoded(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_")
    }

    /// A whole response of one kind.
    static func response(
        _ body: String, type: String? = "application/json", status: String = "200 OK", fields: String = ""
    ) -> String {
        let typeField = type.map { "Content-Type: \($0)\r\n" } ?? ""
        return "HTTP/1.1 \(status)\r\n\(typeField)Content-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)"
    }
}

/// The request as an origin's `/received` or `/echo` reports it.
struct ReceivedRequest: Decodable, CustomStringConvertible {
    struct Part: Decodable {
        let name: String
        let file: String?
        let type: String
        let length: Int
        let sha256: String
        let text: String
    }

    let method: String
    let target: String
    let lines: [String]
    /// Empty if it isn't reported.
    let body: String
    let length: Int
    let sha256: String
    let parts: [Part]

    private enum CodingKeys: CodingKey {
        case method, target, lines, body, length, sha256, parts
    }

    init(from decoder: any Decoder) throws {
        let told = try decoder.container(keyedBy: CodingKeys.self)
        method = try told.decode(String.self, forKey: .method)
        target = try told.decode(String.self, forKey: .target)
        lines = try told.decode([String].self, forKey: .lines)
        body = try told.decodeIfPresent(String.self, forKey: .body) ?? ""
        length = try told.decode(Int.self, forKey: .length)
        sha256 = try told.decode(String.self, forKey: .sha256)
        parts = try told.decodeIfPresent([Part].self, forKey: .parts) ?? []
    }

    init(_ run: Run) throws {
        guard let received = try? JSONDecoder().decode(Self.self, from: Data(run.output.utf8)) else {
            throw TestBedError("the origin received nothing: \(run)")
        }
        self = received
    }

    /// The values of a field, in their order.
    func values(_ name: String) -> [String] {
        lines.filter { $0.lowercased().hasPrefix(name.lowercased() + ":") }
            .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }

    var description: String { "\(method) \(target)\n\(lines.joined(separator: "\n"))\n\n\(body)" }
}

/// A refusal as programs read it.
struct Problem: Decodable {
    struct Mismatch: Decodable {
        let code: Int
        let expected: String
        let received: String
        let line: Int?
        let column: Int?
        let rule: String?
        let underlying: [Mismatch]?
    }

    let status: Int
    let title: String
    let detail: String
    let response: Mismatch?

    /// - Parameter run: curl with `-i`.
    init(_ run: Run) throws {
        guard let end = run.output.range(of: "\r\n\r\n") else { throw TestBedError("no response: \(run)") }
        self = try JSONDecoder().decode(Self.self, from: Data(run.output[end.upperBound...].utf8))
    }
}
