/// How many more times a request may be forwarded (RFC 9110 section 7.6.2).
package enum MaxForwards: Sendable, Equatable {
    /// It doesn't say, or its method is neither TRACE nor OPTIONS, where the field means nothing here.
    case unlimited
    /// At 0 the recipient answers itself. Numbers above 2³¹ - 1 count as 2³¹.
    case hops(Int)
    /// There are several, or it is not a decimal number.
    case malformed

    private static let most = 1 << 31

    fileprivate init(_ value: ByteRange, in bytes: Span<UInt8>) {
        guard !value.isEmpty else {
            self = .malformed
            return
        }
        var number = 0
        for offset in value.offsets {
            guard bytes[offset].isDigit else {
                self = .malformed
                return
            }
            number = min(number * 10 + Int(bytes[offset] & 0x0F), Self.most)
        }
        self = .hops(number)
    }
}

extension Method {
    /// Whether Max-Forwards means something in a request of that method.
    package var countsForwards: Bool { self == .options || self == .trace }
}

extension RequestHead {
    package func maxForwards(in bytes: Span<UInt8>) -> MaxForwards {
        guard method.countsForwards else { return .unlimited }
        var found = MaxForwards.unlimited
        for index in fields.indices where fields[index].id == .maxForwards {
            guard found == .unlimited else { return .malformed }
            found = MaxForwards(fields[index].value, in: bytes)
        }
        return found
    }
}
