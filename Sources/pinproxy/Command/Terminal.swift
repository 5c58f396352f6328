internal import Glibc

/// What standard output is connected to.
enum Terminal {
    static var isInteractive: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Makes an empty screen of it.
    static let cleared = "\u{1B}[H\u{1B}[2J"

    /// Columns; without a terminal so many that nothing is cut.
    static var width: Int { size?.columns ?? .max }
    /// Lines; without a terminal so many that nothing is left out.
    static var height: Int { size?.rows ?? .max }

    /// Of the terminal behind a descriptor; nil: it is none.
    static func columns(of descriptor: CInt) -> Int? { size(of: descriptor)?.columns }

    private static var size: (rows: Int, columns: Int)? { size(of: STDOUT_FILENO) }

    private static func size(of descriptor: CInt) -> (rows: Int, columns: Int)? {
        // struct winsize of ioctl_tty(2), which Swift has in no module of its own: rows, columns, and the same in
        // pixels.
        var size = [UInt16](repeating: 0, count: 4)
        guard isatty(descriptor) == 1, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size[0] > 0, size[1] > 0 else {
            return nil
        }
        return (Int(size[0]), Int(size[1]))
    }
}

extension String {
    /// Filled with spaces, or cut, to a number of characters: a column of a table.
    func padded(to width: Int) -> String {
        let missing = width - count
        return missing < 0 ? String(prefix(width)) : self + String(repeating: " ", count: missing)
    }
}

extension Double {
    /// `1.5` for one decimal of 1.46.
    func text(decimals: Int) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 400) { buffer in
            _ = withVaList([CInt(decimals), self]) { vsnprintf(buffer.baseAddress, buffer.count, "%.*f", $0) }
            return buffer.baseAddress.map { String(cString: $0) } ?? ""
        }
    }
}

extension UInt8 {
    /// Two digits in upper case, as OpenSSL writes fingerprints.
    var hexadecimal: String { (self < 0x10 ? "0" : "") + String(self, radix: 16, uppercase: true) }
}

enum PathText {
    static func name(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// What stands before the last slash: `/` for `/a`, nothing for `a`.
    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

extension String {
    /// The text on one line, fit for a terminal and for a comment in YAML, whoever wrote it.
    ///
    /// A certificate's subject is chosen by the one who made it. A line break in it (YAML knows U+0085,
    /// U+2028 and U+2029 too) would end a comment and begin an entry, and control or direction marks would
    /// show a person something else than what is there: they are written as `\u{…}`.
    var printable: String { printable(longest: 200) }

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
