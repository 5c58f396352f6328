package import PinproxyHTTPWire

/// The `pinproxy explain` command for a request, to be pasted into a shell.
package struct ExplainCommandLine: Sendable, Equatable, CustomStringConvertible {
    private let authority: Authority
    private let method: String
    private let path: String

    /// - Parameter path: without a query; empty: any path.
    package init(_ authority: Authority, method: String = "GET", path: String = "") {
        (self.authority, self.method, self.path) = (authority, method, path)
    }

    package var description: String {
        let bracketed = authority.isIPv6 ? "[\(authority.host)]" : authority.host
        let host = authority.port == 443 ? bracketed : "\(authority)"
        let options = Self.options(method: method, path: path.hasPrefix("/") ? path : "PATH")
        return (["pinproxy explain", host] + options.map(Self.quoted)).joined(separator: " ")
    }

    /// The options that name a request, as words.
    package static func options(method: String, path: String) -> [String] {
        ["--path", path] + (method == "GET" ? [] : ["--method", method])
    }

    /// One word of a POSIX shell.
    package static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || "-_./:,+@%".utf8.contains(byte)
        }
        return isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
