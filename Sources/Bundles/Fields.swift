internal import PinproxySerialization
internal import PinproxyTLS

/// The members of a JSON object. Every problem names the part of the file, and the key.
struct Fields {
    /// 2^53 − 1, the largest integer that every JSON reader keeps (RFC 8259 section 6).
    static let largest = 9_007_199_254_740_991

    let part: String
    private let pairs: [ParameterValue.Pair]

    /// - Parameter keys: the only ones that may be there.
    init(_ value: ParameterValue, in part: String, keys: [String]) throws(BundleError) {
        guard case .dictionary(let pairs) = value else { throw .malformed(part: part, "it is not a JSON object") }
        if let unknown = pairs.first(where: { !keys.contains($0.key) }) {
            throw .malformed(part: part, "\"\(BundleError.shown(unknown.key))\" is not a known key")
        }
        self.part = part
        self.pairs = pairs
    }

    /// From the JSON text of a payload.
    init(_ text: [UInt8], in part: String, keys: [String]) throws(BundleError) {
        try self.init(Self.json(text, in: part), in: part, keys: keys)
    }

    /// More values than any part has: each makes an object, and nobody has signed the text yet.
    private static let mostValues = 65_536

    static func json(_ text: [UInt8], in part: String) throws(BundleError) -> ParameterValue {
        let values = text.count { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") }
        guard values <= mostValues else { throw .malformed(part: part, "it has more than \(mostValues) values") }
        do throws(BodyDefect) { return try StrictJSON.read(text) } catch { throw .malformed(part: part, "\(error)") }
    }

    /// Nil where it is absent.
    func optional(_ key: String) -> ParameterValue? { pairs.first { $0.key == key }?.value }

    func value(_ key: String) throws(BundleError) -> ParameterValue {
        guard let value = optional(key) else { throw wrong(key, "it is missing") }
        return value
    }

    func text(_ key: String, longest: Int = .max) throws(BundleError) -> String {
        guard case .string(let text) = try value(key) else { throw wrong(key, "it is not a string") }
        guard text.utf8.count <= longest else { throw wrong(key, "it is longer than \(longest) bytes") }
        return text
    }

    func optionalText(_ key: String, longest: Int) throws(BundleError) -> String? {
        optional(key) == nil ? nil : try text(key, longest: longest)
    }

    func integer(_ key: String, in range: ClosedRange<Int> = 1...largest) throws(BundleError) -> Int {
        guard case .number(let digits) = try value(key), let number = Int(digits) else {
            throw wrong(key, "it is not an integer")
        }
        guard range.contains(number) else {
            throw wrong(key, "\(number) is not from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func time(_ key: String) throws(BundleError) -> Int64 {
        let text = try text(key)
        guard let time = BundleTime.parse(text) else {
            throw wrong(key, "\"\(BundleError.shown(text))\" is not a time; write it as 2027-06-30T12:00:00Z")
        }
        return time
    }

    func list(_ key: String, most: Int) throws(BundleError) -> [ParameterValue] {
        guard case .array(let list) = try value(key) else { throw wrong(key, "it is not a list") }
        guard list.count <= most else { throw wrong(key, "it has \(list.count) elements, more than \(most)") }
        return list
    }

    func texts(_ key: String, most: Int) throws(BundleError) -> [String] {
        var texts: [String] = []
        for value in try list(key, most: most) {
            guard case .string(let text) = value else { throw wrong(key, "an element is not a string") }
            texts.append(text)
        }
        return texts
    }

    func base64(_ key: String) throws(BundleError) -> [UInt8] {
        guard let bytes = Base64.decode(try text(key).utf8) else {
            throw wrong(key, "it is not base64 with padding (RFC 4648 section 4)")
        }
        return bytes
    }

    func fields(_ key: String, keys: [String]) throws(BundleError) -> Fields {
        try Fields(value(key), in: "\(part).\(key)", keys: keys)
    }

    func wrong(_ key: String, _ reason: String) -> BundleError { .malformed(part: "\(part).\(key)", reason) }
}
