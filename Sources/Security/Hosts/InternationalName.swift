internal import CPinproxyIDN2

/// Converts host names between Unicode, as people write them (`bücher.example`), and the A-labels of DNS, TLS and
/// certificates (`xn--bcher-kva.example`). All other code uses A-labels.
///
/// | written                | is                      | because                                        |
/// |------------------------|-------------------------|------------------------------------------------|
/// | `BÜCHER.example`       | `xn--bcher-kva.example` | case is folded, and letters composed (NFC)     |
/// | `faß.example`          | `xn--fa-hia.example`    | the sharp s is a separate letter               |
/// | `日本語。example`       | `xn--wgv71a119e.example` | the full stops of East Asia are dots          |
/// | `XN--BCHER-KVA.example` | `xn--bcher-kva.example` | a valid A-label is unchanged                   |
/// | `xn--a.example`        | refused                 | its text is not allowed in a name              |
/// | `💩.example`           | refused                 | no symbols (IDNA2008); its A-label is accepted |
///
/// U-labels follow IDNA2008 with the non-transitional mapping of UTS 46, as in browsers. A-labels need only be valid by
/// UTS 46, since names with symbols exist. Similar letters (a Cyrillic `а` in `аpple.example`) show in the A-label,
/// which people always see first.
package enum InternationalName {
    /// Longer than any name that fits into 253 bytes, and cheap to convert.
    private static let sizeLimit = 1024

    /// The name in A-labels. An ASCII name is only lowercased, not checked.
    package static func toASCII(_ name: String) throws(InternationalNameError) -> String {
        let lowercase = name.lowercased()
        if isPlain(lowercase.utf8.span) { return lowercase }
        guard name.utf8.count <= sizeLimit else {
            throw InternationalNameError(label: name, reason: "it is longer than any host name")
        }
        var labels: [String] = []
        for label in name.unicodeScalars.split(omittingEmptySubsequences: false, whereSeparator: isDot) {
            labels.append(try asciiLabel(String(label)))
        }
        return labels.joined(separator: ".")
    }

    /// The name in U-labels, to show beside the A-labels, since letters look alike. Unchanged without A-labels.
    package static func toUnicode(_ name: String) -> String {
        var text: UnsafeMutablePointer<CChar>?
        guard idn2_to_unicode_8z8z(name, &text, 0) == IDN2_OK.rawValue, let text else { return name }
        defer { idn2_free(text) }
        return String(cString: text)
    }

    /// Whether a lower-case name is ASCII without A-labels, as nearly all are: avoids an allocation.
    private static func isPlain(_ name: Span<UInt8>) -> Bool {
        for index in name.indices {
            if name[index] >= 0x80 { return false }
            let beginsLabel = index == 0 || name[index - 1] == UInt8(ascii: ".")
            if beginsLabel, name[index] == UInt8(ascii: "x"), index + 3 < name.count,
                name[index + 1] == UInt8(ascii: "n"), name[index + 2] == UInt8(ascii: "-"),
                name[index + 3] == UInt8(ascii: "-")
            {
                return false
            }
        }
        return true
    }

    /// The four dots of UTS 46.
    private static func isDot(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case ".", "\u{3002}", "\u{FF0E}", "\u{FF61}": true
        default: false
        }
    }

    private static func asciiLabel(_ label: String) throws(InternationalNameError) -> String {
        var written = label
        var flags = standard
        if label.utf8.allSatisfy({ $0 < 0x80 }) {
            written = label.lowercased()
            guard written.utf8.starts(with: "xn--".utf8) else { return written }
            flags |= Int32(bitPattern: IDN2_NO_ALABEL_ROUNDTRIP.rawValue)
        }
        // A C string would end there.
        guard !written.utf8.contains(0) else { throw InternationalNameError(label: label, reason: "it contains a NUL") }
        var ascii: UnsafeMutablePointer<UInt8>?
        let result = written.withCString(encodedAs: UTF8.self) { idn2_lookup_u8($0, &ascii, flags) }
        guard result == IDN2_OK.rawValue, let ascii else {
            throw InternationalNameError(label: label, reason: String(cString: idn2_strerror(result)))
        }
        defer { idn2_free(ascii) }
        let text = String(cString: ascii)
        // Some characters map to a dot, and some to nothing.
        guard !text.isEmpty, !text.utf8.contains(UInt8(ascii: ".")) else {
            throw InternationalNameError(label: label, reason: "it contains a character that labels can't have")
        }
        return text
    }

    /// Not IDN2_USE_STD3_ASCII_RULES: libidn2 2.3 would drop what they forbid. The A-label is checked later.
    private static let standard = Int32(bitPattern: IDN2_NFC_INPUT.rawValue | IDN2_NONTRANSITIONAL.rawValue)
}

/// The label that is not an international name, and why.
package struct InternationalNameError: Error, Sendable, Hashable, CustomStringConvertible {
    /// As written.
    package let label: String
    /// In the words of libidn2, e.g. "string contains a disallowed character".
    package let reason: String

    package var description: String { "“\(label)” is not a valid international name: \(reason)" }
}
