internal import Glibc

/// The terminal that standard output is connected to.
enum Terminal {
    static var isInteractive: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Clears the screen.
    static let cleared = "\u{1B}[H\u{1B}[2J"

    /// Columns; unlimited without a terminal.
    static var width: Int { size?.columns ?? .max }
    /// Lines; unlimited without a terminal.
    static var height: Int { size?.rows ?? .max }

    /// Columns of a descriptor's terminal; nil: not a terminal.
    static func columns(of descriptor: CInt) -> Int? { size(of: descriptor)?.columns }

    private static var size: (rows: Int, columns: Int)? { size(of: STDOUT_FILENO) }

    private static func size(of descriptor: CInt) -> (rows: Int, columns: Int)? {
        // struct winsize of ioctl_tty(2), which Swift's modules lack: rows, columns, and the size in pixels.
        var size = [UInt16](repeating: 0, count: 4)
        guard isatty(descriptor) == 1, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size[0] > 0, size[1] > 0 else {
            return nil
        }
        return (Int(size[0]), Int(size[1]))
    }
}

extension String {
    /// Padded with spaces, or cut, to a number of characters: a column of a table.
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

    /// The part before the last slash: `/` for `/a`, empty for `a`.
    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

extension String {
    /// Untrusted text on one line, safe for a terminal and for a comment in YAML.
    ///
    /// A certificate's maker chooses its subject. A line break in it (for YAML also U+0085, U+2028 and U+2029) would
    /// end a comment and begin an entry, and control or direction marks would misrepresent the text. They are written
    /// as `\u{…}`.
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
