/// A value of a property list.
public indirect enum PropertyListValue: Sendable, Hashable {
    /// Text.
    case string(String)
    /// An integer; in XML lists also a real number without a fraction.
    case integer(Int128)
    /// A number in floating point.
    case real(Double)
    /// True or false.
    case bool(Bool)
    /// A date, in seconds since 1970 in UTC.
    case date(Double)
    /// Bytes.
    case data([UInt8])
    /// Values in their order.
    case array([PropertyListValue])
    /// Values by their keys.
    case dictionary([String: PropertyListValue])
    /// A reference to another object of a keyed archive, by its number.
    case reference(UInt64)
}
