internal import Glibc

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

/// Parts of a path.
enum PathText {
    /// What follows the last slash.
    static func name(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// What stands before the last slash: `/` for `/a`, nothing for `a`.
    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
