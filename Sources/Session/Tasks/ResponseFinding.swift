package import PinproxyHTTPWire
import PinproxySerialization

/// A response that breaks the rules, for logs and counts.
package struct ResponseFinding: Sendable {
    package let number: UInt64
    package let authority: Authority?
    package let method: String
    package let path: String
    package let status: Int
    /// The pattern of the matched entry.
    package let entry: String?
    package let rules: ExchangeRules

    init(_ record: borrowing TaskRecord, by rules: ExchangeRules) {
        number = record.number
        authority = record.authority
        method = record.methodName
        path = String(decoding: record.path, as: UTF8.self)
        status = record.status
        entry = record.entry
        self.rules = rules
    }
}
