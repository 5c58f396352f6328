import Foundation
import HTTPWire

/// Name and password of `Proxy-Authorization: Basic …` (RFC 7617).
package struct BasicCredentials: Sendable, Equatable {
    package let user: String
    let password: [UInt8]

    /// Longer values are no one's password, and would only cost time.
    private static let limit = 2048

    package init(user: String, password: [UInt8]) {
        self.user = user
        self.password = password
    }

    /// Reads the field's value. Nil if it is of another scheme, no base64, without a colon, or if
    /// the name is not UTF-8 or either part holds a control character (as RFC 7617 forbids).
    package init?(_ value: Span<UInt8>) {
        guard value.count > 6, value.count <= Self.limit else { return nil }
        var text: [UInt8] = []
        for offset in 0..<value.count { text.append(value[offset]) }
        guard String(decoding: text[..<5], as: UTF8.self).lowercased() == "basic", text[5] == UInt8(ascii: " ") else {
            return nil
        }
        let encoded = text[6...].drop { $0 == UInt8(ascii: " ") }
        guard !encoded.isEmpty, let decoded = Data(base64Encoded: Data(encoded)),
            !decoded.contains(where: { $0 < 0x20 || $0 == 0x7F }),
            let colon = decoded.firstIndex(of: UInt8(ascii: ":")),
            let user = String(validating: decoded[..<colon], as: UTF8.self)
        else { return nil }
        self.init(user: user, password: Array(decoded[(colon + 1)...]))
    }
}
