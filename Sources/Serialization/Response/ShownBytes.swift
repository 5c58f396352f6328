/// Shows received bytes: escapes everything that a terminal or a log could take for more than text.
package enum ShownBytes {
    package static func text(_ bytes: Span<UInt8>, most: Int = 100) -> String {
        let shown = min(bytes.count, most)
        var copy: [UInt8] = []
        copy.reserveCapacity(shown)
        for index in 0..<shown { copy.append(bytes[index]) }
        var text = ""
        for scalar in String(decoding: copy, as: UTF8.self).unicodeScalars {
            text += Self.text(scalar)
        }
        return bytes.count > shown ? text + "…" : text
    }

    /// The first line of a library's message, which may quote the body.
    static func line(_ message: String) -> String {
        let line = message.split(whereSeparator: \.isNewline).first.map(String.init) ?? message
        var text = line
        while text.last == "." || text.last == " " { text.removeLast() }
        return text.withUTF8 { Self.text($0.span, most: 200) }
    }

    package static func text(_ scalar: Unicode.Scalar) -> String {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
            "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
        default: String(scalar)
        }
    }
}
