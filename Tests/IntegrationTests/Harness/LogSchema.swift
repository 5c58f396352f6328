import Foundation
import Testing

/// `docs/log.schema.json`, which every event of every proxy in the tests must match.
///
/// Supports the keywords of JSON Schema (2020-12) that the file uses; others are an error (`HarnessTests`).
struct LogSchema: Sendable {
    static let own = Result { try LogSchema(Data(Documentation.text("docs/log.schema.json").utf8)) }

    let events: Set<String>
    private let root: Node

    init(_ json: Data) throws {
        root = try Node(JSONSerialization.jsonObject(with: json))
        guard let names = root.properties["event"]?.allowed else { throw TestBedError("the schema lists no events") }
        events = Set(names)
    }

    /// Records an issue for each event in a program's output that doesn't match. Other lines are ignored: the tests'
    /// peers write events without a level.
    static func check(_ lines: [String], of program: String) {
        var known: Set<String> = []
        for line in lines where line.hasPrefix("{\"time\":") && line.contains("\"level\":") {
            // A killed proxy's last line may be cut.
            guard let value = try? JSONSerialization.jsonObject(with: Data(line.utf8)) else { continue }
            let problems = (try? own.get().problems(of: value)) ?? ["docs/log.schema.json can't be read"]
            for problem in problems where known.insert(problem).inserted {
                Issue.record(
                    Comment(rawValue: "an event of \(program) doesn't fit docs/log.schema.json: \(problem)\n\(line)"))
            }
        }
    }

    func problems(of value: Any) -> [String] { root.problems(of: value, at: "event") }
}

extension LogSchema {
    private static let annotations: Set<String> = ["$schema", "title", "description"]

    /// A part of the schema.
    private final class Node: Sendable {
        let properties: [String: Node]
        /// The strings of `enum` or `const`.
        let allowed: [String]?
        private let types: Set<String>
        private let required: [String]
        private let isClosed: Bool
        private let items: Node?
        private let conditions: [(condition: Node, consequence: Node)]
        private let range: (least: Double?, most: Double?)
        private let pattern: String?

        init(_ json: Any) throws {
            guard var object = json as? [String: Any] else { throw TestBedError("not a schema: \(json)") }
            func take<Value>(_ key: String, as type: Value.Type = Value.self) throws -> Value? {
                guard let value = object.removeValue(forKey: key) else { return nil }
                guard let read = value as? Value else { throw TestBedError("\(key) of the schema is \(value)") }
                return read
            }
            for name in LogSchema.annotations { object[name] = nil }
            properties = try (take("properties", as: [String: Any].self) ?? [:]).mapValues(Node.init)
            allowed = try take("enum") ?? take("const", as: String.self).map { [$0] }
            types = Set((object["type"] as? String).map { [$0] } ?? object["type"] as? [String] ?? [])
            object["type"] = nil
            required = try take("required") ?? []
            isClosed = try take("additionalProperties").map { !$0 } ?? false
            items = try take("items", as: [String: Any].self).map(Node.init)
            conditions = try (take("allOf", as: [[String: Any]].self) ?? []).map { part in
                guard Set(part.keys) == ["if", "then"], let condition = part["if"], let consequence = part["then"]
                else {
                    throw TestBedError("allOf of the schema has \(part.keys)")
                }
                return (try Node(condition), try Node(consequence))
            }
            range = (try take("minimum"), try take("maximum"))
            pattern = try take("pattern")
            guard object.isEmpty else {
                throw TestBedError("the schema has keywords that the tests don't know: \(object.keys.sorted())")
            }
        }

        func problems(of value: Any, at place: String) -> [String] {
            var found: [String] = []
            if !types.isEmpty, !Self.types(of: value).contains(where: types.contains) {
                found.append("\(place) is \(value), not of the type \(types.sorted().joined(separator: " or "))")
            }
            if let allowed, !allowed.contains(where: { $0 == value as? String }) {
                found.append("\(place) is \(value), which is not listed")
            }
            if let text = value as? String, let pattern, text.range(of: pattern, options: .regularExpression) == nil {
                found.append("\(place) is \(text), and not like \(pattern)")
            }
            if let number = value as? NSNumber, !Self.types(of: value).contains("boolean") {
                if let least = range.least, number.doubleValue < least {
                    found.append("\(place) is \(number), less than \(least)")
                }
                if let most = range.most, number.doubleValue > most {
                    found.append("\(place) is \(number), more than \(most)")
                }
            }
            if let list = value as? [Any], let items {
                found += list.flatMap { items.problems(of: $0, at: "an element of \(place)") }
            }
            if let object = value as? [String: Any] {
                found += required.filter { object[$0] == nil }.map { "\(place) \(object["event"] ?? "") lacks \($0)" }
                for (name, value) in object.sorted(by: { $0.key < $1.key }) {
                    if let property = properties[name] {
                        found += property.problems(of: value, at: name)
                    } else if isClosed {
                        found.append("\(name) of \(place) \(object["event"] ?? "") is not in the schema")
                    }
                }
            }
            for (condition, consequence) in conditions where condition.problems(of: value, at: place).isEmpty {
                found += consequence.problems(of: value, at: place)
            }
            return found
        }

        /// Only the C type distinguishes numbers from booleans.
        private static func types(of value: Any) -> [String] {
            switch value {
            case is String: ["string"]
            case let number as NSNumber
            where String(cString: number.objCType) == "c" || String(cString: number.objCType) == "B": ["boolean"]
            case let number as NSNumber:
                number.doubleValue == number.doubleValue.rounded() ? ["integer", "number"] : ["number"]
            case is [Any]: ["array"]
            case is [String: Any]: ["object"]
            default: ["null"]
            }
        }
    }
}
