extension String {
    /// The text on one line, fit for a terminal and for a comment in YAML, whoever wrote it.
    ///
    /// A certificate's subject is chosen by the one who made it. A line break in it (YAML knows U+0085,
    /// U+2028 and U+2029 too) would end a comment and begin an entry, and control or direction marks would
    /// show a person something else than what is there: they are written as `\u{…}`.
    var printable: String { printable(longest: 200) }

    /// - Parameter longest: how many scalars are shown.
    func printable(longest: Int) -> String {
        var text = ""
        for scalar in unicodeScalars.prefix(longest) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
                text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return unicodeScalars.count > longest ? text + "…" : text
    }

    /// Several lines, each of them printable; none is cut.
    var printableLines: [String] {
        split(separator: "\n", omittingEmptySubsequences: false).map { String($0).printable(longest: .max) }
    }
}
