/// Reads property lists, XML and binary, as ``PropertyListResponseSerializer`` does; keys are sorted.
struct PropertyListReader {
    private var path = ValuePath()

    static func read(_ body: [UInt8]) throws(RequestSerializationError) -> ParameterValue {
        let value: PropertyListValue?
        do throws(BodyDefect) {
            value = try PropertyListResponseSerializer().value(ofBody: body)
        } catch {
            throw RequestSerializationError(.malformedBody(format: "a property list", error))
        }
        var reader = PropertyListReader()
        return try value.map { value throws(RequestSerializationError) in try reader.parameter(value) } ?? .null
    }

    private mutating func parameter(_ value: PropertyListValue) throws(RequestSerializationError) -> ParameterValue {
        switch value {
        case .string(let text): return .string(text)
        case .dictionary(let dictionary):
            var pairs: [ParameterValue.Pair] = []
            for (key, value) in dictionary.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                path.enter(key: key)
                pairs.append(ParameterValue.Pair(key: key, value: try parameter(value)))
                path.leave()
            }
            return .dictionary(pairs)
        case .array(let list):
            var values: [ParameterValue] = []
            for value in list {
                path.enterElement()
                values.append(try parameter(value))
                path.leave()
            }
            return .array(values)
        case .bool(let value): return .bool(value)
        case .integer(let number): return .number("\(number)")
        case .real(let number):
            guard number.isFinite else { throw path.inexpressible("not a finite number", in: "another format") }
            return .number("\(number)")
        case .date: throw path.inexpressible("a date", in: "another format")
        case .data: throw path.inexpressible("data", in: "another format")
        case .reference: throw path.inexpressible("a reference", in: "another format")
        }
    }
}
