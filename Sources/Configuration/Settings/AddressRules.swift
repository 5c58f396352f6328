internal import PinproxyAddresses
internal import PinproxySession

extension AddressRange {
    /// Parses an address or an address with `/bits`. Bits beyond the prefix must be zero: `10.1.2.3/8` is unclear.
    static func parse(_ text: String) -> Result<AddressRange, Reason> {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(parts[0])) else {
            return .failure(
                Reason("\"\(text)\" is not an IP address or range; write e.g. 127.0.0.0/8, 192.0.2.7 or ::1"))
        }
        var length: Int?
        if parts.count == 2 {
            length = UInt8(parts[1]).map(Int.init)
            let width = address.bytes.count * 8
            guard let length, length <= width else {
                return .failure(Reason("\"\(text)\": the text after the slash must be a number from 0 to \(width)"))
            }
        }
        guard let range = AddressRange(address, prefixLength: length) else {
            return .failure(Reason("\"\(text)\" has bits set beyond its first \(length ?? 0)"))
        }
        return .success(range)
    }
}

extension Form where Value == AddressRules.Rule {
    /// A class of addresses by its name, or a range.
    static var addressRule: Form {
        Form { text in
            if let kind = AddressClass(rawValue: text) { return .success(.kind(kind)) }
            if text.contains(where: { ".:/".contains($0) }) {
                return AddressRange.parse(text).map(AddressRules.Rule.range)
            }
            let names = AddressClass.allCases.map(\.rawValue)
            if let nearest = NearestKey.find(text, in: names) {
                return .failure(Reason("unknown value \"\(text)\"; did you mean \"\(nearest)\"?"))
            }
            return .failure(
                Reason("unknown value \"\(text)\"; write \(names.joined(separator: ", ")), or an address or range"))
        }
    }
}
