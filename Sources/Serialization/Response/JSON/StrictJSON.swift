/// JSON of our own formats: UTF-8 without a byte order mark, no name twice, nothing before or after the value.
package enum StrictJSON {
    /// - Throws: what is wrong, with its line.
    package static func read(_ text: [UInt8]) throws(BodyDefect) -> ParameterValue {
        var scanner = JSONScanner(text.span, makesValue: true)
        return try scanner.scan(refusesRepeatedKeys: true)
    }

    /// Compact, in the order given. Nil if the value isn't one of JSON: a set, or a name that repeats.
    package static func write(_ value: ParameterValue) -> [UInt8]? { try? JSONWriter.write(value) }
}
