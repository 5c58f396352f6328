/// The DER (X.690) that certificate extensions need.
enum DERWriter {
    enum Tag: UInt8 {
        case boolean = 0x01
        case integer = 0x02
        case bitString = 0x03
        case octetString = 0x04
        case objectIdentifier = 0x06
        case sequence = 0x30
        /// `[0] IMPLICIT`: keyIdentifier of an authorityKeyIdentifier.
        case context0 = 0x80
        /// `[0]` and `[1] IMPLICIT`: the subtrees of nameConstraints.
        case constructed0 = 0xa0
        case constructed1 = 0xa1
        /// `[2] IMPLICIT`: dNSName of a GeneralName.
        case context2 = 0x82
        /// `[7] IMPLICIT`: iPAddress of a GeneralName.
        case context7 = 0x87
    }

    /// A value with its tag and shortest definite length (X.690 section 10.1).
    static func value(_ tag: Tag, _ contents: [UInt8]) -> [UInt8] {
        var bytes = [tag.rawValue]
        bytes.reserveCapacity(contents.count + 4)
        if contents.count < 0x80 {
            bytes.append(UInt8(contents.count))
        } else {
            let octets = stride(from: 24, through: 0, by: -8)
                .map { UInt8(truncatingIfNeeded: contents.count >> $0) }.drop { $0 == 0 }
            bytes.append(0x80 | UInt8(octets.count))
            bytes += octets
        }
        return bytes + contents
    }

    static func sequence(_ parts: [UInt8]...) -> [UInt8] { value(.sequence, parts.flatMap(\.self)) }
}
