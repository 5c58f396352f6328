/// Parameters as a query or as the body of a form, byte for byte as AFNetworking writes them
/// (AFQueryStringFromParameters, AFPercentEscapedStringFromString).
///
/// Letters, digits and `-._~/?` stay; every other byte of the UTF-8 is percent-encoded, a space as `%20`.
///
/// | value | is written |
/// |---|---|
/// | `["a": "x", "b": 1]` | `a=x&b=1`, in the order of the keys |
/// | `["k": ["sub": "x"]]` | `k%5Bsub%5D=x` |
/// | `["k": ["x", "y"]]` | `k%5B%5D=x&k%5B%5D=y` |
/// | `["k": .set(["y", "x"])]` | `k=x&k=y`, sorted |
/// | `["k": nil]` | `k` |
/// | `["k": true]` | `k=true`; AFNetworking writes `k=1` |
///
/// An empty dictionary, array or set adds nothing.
public enum QueryEncoder {
    /// The names and values, joined by `&`; empty without parameters.
    public static func encode(_ parameters: [ParameterValue.Pair]) -> [UInt8] {
        var query: [UInt8] = []
        // Capacity for short names and values: with many of them the array would often grow and be copied.
        query.reserveCapacity(parameters.reduce(0) { $0 + $1.value.count } * 32)
        ParameterLeaves(spell: append).forEach(of: parameters) { name, text in
            if !query.isEmpty { query.append(UInt8(ascii: "&")) }
            query += name
            guard let text else { return }
            query.append(UInt8(ascii: "="))
            append(text, to: &query)
        }
        return query
    }

    /// One name or value, percent-encoded.
    public static func escape(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The request target with the query after its own and before a fragment; `*` (RFC 9112 section 3.2.4) stays.
    /// (AFNetworking appends after the fragment, where no server sees it.)
    public static func join(_ query: [UInt8], to target: [UInt8]) -> [UInt8] {
        guard !query.isEmpty, target != [UInt8(ascii: "*")] else { return target }
        let end = target.firstIndex(of: UInt8(ascii: "#")) ?? target.endIndex
        var joined: [UInt8] = []
        joined.reserveCapacity(target.count + 1 + query.count)
        joined += target[..<end]
        if !joined.contains(UInt8(ascii: "?")) {
            joined.append(UInt8(ascii: "?"))
        } else if joined.last != UInt8(ascii: "?"), joined.last != UInt8(ascii: "&") {
            joined.append(UInt8(ascii: "&"))
        }
        joined += query
        joined += target[end...]
        return joined
    }

    /// Counts first, so that bytes are written without a capacity check for each.
    private static func append(_ text: String, to out: inout [UInt8]) {
        let bytes = text.utf8.span
        var count = 0
        for index in bytes.indices { count += isUnreserved(bytes[index]) ? 1 : 3 }
        var end = out.count
        out.append(contentsOf: repeatElement(0, count: count))
        var written = out.mutableSpan
        for index in bytes.indices {
            let byte = bytes[index]
            if isUnreserved(byte) {
                written[end] = byte
                end += 1
            } else {
                written[end] = UInt8(ascii: "%")
                written[end + 1] = hexadecimal(byte >> 4)
                written[end + 2] = hexadecimal(byte & 15)
                end += 3
            }
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        byte < 0x80 && (byte < 64 ? unreserved.low : unreserved.high) >> UInt64(byte & 63) & 1 == 1
    }

    /// A bit for each byte that stays. Below 64: `-./0123456789?`. Above: letters, `_` and `~`.
    private static var unreserved: (low: UInt64, high: UInt64) { (0x83FF_E000_0000_0000, 0x47FF_FFFE_87FF_FFFE) }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 {
        digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "A") - 10)
    }
}

extension ParameterValue {
    /// The number of values at its top level.
    fileprivate var count: Int {
        switch self {
        case .dictionary(let pairs): pairs.count
        case .array(let values): values.count
        case .set(let values): values.count
        case .string, .number, .bool, .null: 1
        }
    }
}
