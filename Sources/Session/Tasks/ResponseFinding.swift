package import HTTPWire
import Serialization

/// A response that the rules find wrong: of which exchange, and by which rules. For those who log and count.
package struct ResponseFinding: Sendable {
    package let number: UInt64
    package let authority: Authority?
    package let method: String
    package let path: String
    package let status: Int
    /// The pattern of the entry that decided.
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
