/// A value of a property list.
public indirect enum PropertyListValue: Sendable, Hashable {
    case string(String)
    /// In lists of XML also a real number without a fraction.
    case integer(Int128)
    case real(Double)
    case bool(Bool)
    /// Seconds since 1970 in UTC.
    case date(Double)
    case data([UInt8])
    case array([PropertyListValue])
    case dictionary([String: PropertyListValue])
    /// A reference to another object of a keyed archive, by its number.
    case reference(UInt64)
}
