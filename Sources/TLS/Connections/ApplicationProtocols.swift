/// ALPN protocols (RFC 7301) in wire form, each with a length prefix.
struct ApplicationProtocols: Sendable {
    let names: [[UInt8]]
    let wire: [UInt8]

    /// Names that are empty or over 255 bytes can't be expressed.
    init(_ names: [String]) throws(TLSError) {
        self.names = names.map { Array($0.utf8) }
        guard self.names.allSatisfy({ (1...255).contains($0.count) }) else {
            throw TLSError(.setup, "an application protocol's name has 1 to 255 bytes")
        }
        wire = self.names.flatMap { [UInt8($0.count)] + $0 }
    }

    /// A client's offer, in human-readable form: the first few, in printable ASCII.
    static func shown(_ offered: UnsafeBufferPointer<UInt8>) -> [String] {
        var names: [String] = []
        var start = 0
        while start < offered.count, names.count < 8 {
            let end = start + 1 + Int(offered[start])
            guard end <= offered.count else { break }
            names.append(
                String(
                    decoding: offered[start + 1..<end].map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") },
                    as: UTF8.self))
            start = end
        }
        return names
    }

    /// The range, within the client's offer, of the best protocol.
    func select(from offered: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        for name in names {
            var start = 0
            while start < offered.count {
                let range = start + 1..<start + 1 + Int(offered[start])
                guard range.upperBound <= offered.count else { break }
                if offered[range].elementsEqual(name) { return range }
                start = range.upperBound
            }
        }
        return nil
    }
}
