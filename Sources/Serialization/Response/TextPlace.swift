/// A place in a text, as editors count it.
public struct TextPlace: Sendable, Hashable, CustomStringConvertible {
    /// The line, from 1. A line ends with a line feed.
    public let line: Int
    /// The column from 1, in characters (Unicode scalars); nil if only the line is known.
    public let column: Int?

    /// See the properties.
    public init(line: Int, column: Int?) {
        self.line = line
        self.column = column
    }

    init(ofByte offset: Int, in text: Span<UInt8>) {
        var line = 1
        var column = 1
        for index in 0..<min(offset, text.count) {
            let byte = text[index]
            if byte == 0x0A {
                line += 1
                column = 1
            } else if byte & 0xC0 != 0x80 {
                column += 1
            }
        }
        self.init(line: line, column: column)
    }

    public var description: String { column.map { "line \(line), column \($0)" } ?? "line \(line)" }
}
