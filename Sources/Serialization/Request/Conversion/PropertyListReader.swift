internal import Foundation

/// Reads property lists, XML and binary. Their dictionaries have no order; keys are sorted. What is wrong is what
/// ``PropertyListResponseSerializer`` finds wrong.
struct PropertyListReader {
    private var path = ValuePath()

    static func read(_ body: [UInt8]) throws(RequestSerializationError) -> ParameterValue {
        let value: Any?
        do throws(BodyDefect) {
            value = try PropertyListResponseSerializer().value(ofBody: body)
        } catch {
            throw RequestSerializationError(.malformedBody(format: "a property list", error))
        }
        var reader = PropertyListReader()
        return try value.map { value throws(RequestSerializationError) in try reader.parameter(value) } ?? .null
    }

    private mutating func parameter(_ value: Any) throws(RequestSerializationError) -> ParameterValue {
        switch value {
        case let text as String: return .string(text)
        case let dictionary as [String: Any]:
            var pairs: [ParameterValue.Pair] = []
            for (key, value) in dictionary.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                path.enter(key: key)
                pairs.append(ParameterValue.Pair(key: key, value: try parameter(value)))
                path.leave()
            }
            return .dictionary(pairs)
        case let list as [Any]:
            var values: [ParameterValue] = []
            for value in list {
                path.enterElement()
                values.append(try parameter(value))
                path.leave()
            }
            return .array(values)
        case is Date: throw path.inexpressible("a date", in: "another format")
        case is Data: throw path.inexpressible("data", in: "another format")
        case let number as NSNumber: return try parameter(number)
        default: throw path.inexpressible("a reference", in: "another format")
        }
    }

    private func parameter(_ number: NSNumber) throws(RequestSerializationError) -> ParameterValue {
        switch String(cString: number.objCType) {
        // Integers have 64 bits, so that one of 8 is a truth value.
        case "c": return .bool(number.boolValue)
        case "d", "f":
            guard number.doubleValue.isFinite else { throw path.inexpressible("not a finite number", in: "another format") }
            return .number("\(number.doubleValue)")
        default: return .number(number.stringValue)
        }
    }
}
