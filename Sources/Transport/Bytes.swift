extension [UInt8] {
    package init(copying bytes: RawSpan) { self = bytes.withUnsafeBytes { Array($0) } }

    package mutating func append(copying bytes: RawSpan) { bytes.withUnsafeBytes { append(contentsOf: $0) } }
}
