package struct MalformedMessage: Error {
    package init() {}
}

/// Writes a message between two processes of the same program: numbers, texts and lists, one after the other.
package struct MessageWriter {
    package private(set) var bytes: [UInt8] = []

    package mutating func write(_ byte: UInt8) { bytes.append(byte) }

    package mutating func write(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    package mutating func write(_ number: Int) {
        for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    package mutating func write(_ text: String) {
        write(text.utf8.count)
        bytes += text.utf8
    }

    mutating func write(_ number: Int?) {
        write(number != nil)
        if let number { write(number) }
    }

    mutating func write<Element>(_ list: [Element], _ element: (Element, inout MessageWriter) -> Void) {
        write(list.count)
        for item in list { element(item, &self) }
    }
}

/// Reads what a ``MessageWriter`` wrote, or anything else: nothing in it is believed.
package struct MessageReader {
    private let bytes: [UInt8]
    private var at = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package mutating func byte() throws(MalformedMessage) -> UInt8 {
        guard at < bytes.count else { throw MalformedMessage() }
        defer { at += 1 }
        return bytes[at]
    }

    package mutating func flag() throws(MalformedMessage) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        default: throw MalformedMessage()
        }
    }

    package mutating func number() throws(MalformedMessage) -> Int {
        var number = 0
        for shift in stride(from: 0, to: 64, by: 8) { number |= Int(try byte()) << shift }
        return number
    }

    /// A length, a limit or a place: not below 0.
    mutating func amount() throws(MalformedMessage) -> Int {
        let number = try number()
        guard number >= 0 else { throw MalformedMessage() }
        return number
    }

    mutating func optionalNumber() throws(MalformedMessage) -> Int? { try flag() ? try number() : nil }

    package mutating func text() throws(MalformedMessage) -> String {
        let count = try amount()
        guard count <= bytes.count - at else { throw MalformedMessage() }
        defer { at += count }
        return String(decoding: bytes[at..<at + count], as: UTF8.self)
    }

    /// Text for display: cut to a readable length, and escaped for terminals.
    mutating func shownText() throws(MalformedMessage) -> String {
        ShownBytes.text(Array(try text().utf8).span, most: 1000)
    }

    /// - Parameter most: elements.
    mutating func list<Element>(
        most: Int, _ element: (inout MessageReader) throws(MalformedMessage) -> Element
    ) throws(MalformedMessage) -> [Element] {
        let count = try amount()
        guard count <= most else { throw MalformedMessage() }
        var list: [Element] = []
        for _ in 0..<count { list.append(try element(&self)) }
        return list
    }

    /// Nothing may follow.
    package func finish() throws(MalformedMessage) {
        guard at == bytes.count else { throw MalformedMessage() }
    }
}
