internal import FoundationEssentials

/// Property lists in XML, as Foundation reads them.
enum XMLPropertyList {
    /// - Parameter body: well-formed XML of bounded depth.
    static func value(of body: [UInt8]) throws(BodyDefect) -> PropertyListValue {
        do {
            return try PropertyListDecoder().decode(Element.self, from: Data(body)).value
        } catch DecodingError.dataCorrupted(let context) {
            throw defect((context.underlyingError as? CocoaError)?.userInfo["NSDebugDescription"] as? String ?? context.debugDescription)
        } catch {
            throw BodyDefect("a number, a date or data that can't be read")
        }
    }

    /// Foundation says the line in words only.
    private static func defect(_ message: String) -> BodyDefect {
        let line = message.firstMatch(of: /(?:on|at) line (\d+)/).flatMap { Int($0.1) }
        return BodyDefect(ShownBytes.line(message), at: line.map { TextPlace(line: $0, column: nil) })
    }

    /// Any value. Decoders tell of what kind one is only by refusing all others; the frequent ones are tried first.
    private struct Element: Decodable {
        let value: PropertyListValue

        init(from decoder: any Decoder) throws {
            let single = try decoder.singleValueContainer()
            if let text = try? single.decode(String.self) {
                value = .string(text)
            } else if let number = try? single.decode(Int64.self) {
                value = .integer(Int128(number))
            } else if let fields = try? decoder.container(keyedBy: Key.self) {
                var dictionary: [String: PropertyListValue] = [:]
                for key in fields.allKeys { dictionary[key.stringValue] = try fields.decode(Element.self, forKey: key).value }
                value = .dictionary(dictionary)
            } else if var elements = try? decoder.unkeyedContainer() {
                var list: [PropertyListValue] = []
                while !elements.isAtEnd { list.append(try elements.decode(Element.self).value) }
                value = .array(list)
            } else if let truth = try? single.decode(Bool.self) {
                value = .bool(truth)
            } else if let number = try? single.decode(UInt64.self) {
                value = .integer(Int128(number))
            } else if let number = try? single.decode(Double.self) {
                value = .real(number)
            } else if let date = try? single.decode(Date.self) {
                value = .date(date.timeIntervalSince1970)
            } else {
                value = .data([UInt8](try single.decode(Data.self)))
            }
        }

        private struct Key: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }

            init?(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
    }
}
