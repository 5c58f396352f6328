/// An http or https URL without a fragment. A URL with user information is refused.
package struct RequestURL: Sendable, Hashable, CustomStringConvertible {
    /// The scheme, host and port of a URL (RFC 6454). Data for one origin is not shown to another.
    package struct Origin: Sendable, Hashable, CustomStringConvertible {
        package let isSecure: Bool
        package let authority: Authority

        package init(isSecure: Bool, authority: Authority) {
            self.isSecure = isSecure
            self.authority = authority
        }

        package var defaultPort: UInt16 { isSecure ? 443 : 80 }

        /// For a Host field: without the scheme's default port.
        package var host: String {
            guard authority.port == defaultPort else { return authority.description }
            return authority.isIPv6 ? "[\(authority.host)]" : authority.host
        }

        package var description: String { "\(isSecure ? "https" : "http")://\(host)" }
    }

    /// The most bytes of a Location field, and of the resulting target.
    package static let longest = 8192

    package let origin: Origin
    /// Path and query in origin form; begins with a slash.
    package let target: [UInt8]

    package var isSecure: Bool { origin.isSecure }
    package var authority: Authority { origin.authority }

    /// - Parameter target: a query alone, or anything but a path, becomes a path.
    package init(isSecure: Bool, authority: Authority, target: [UInt8]) {
        origin = Origin(isSecure: isSecure, authority: authority)
        let slash = UInt8(ascii: "/")
        self.target =
            switch target.first {
            case slash: target
            case UInt8(ascii: "?"): [slash] + target
            default: [slash]
            }
    }

    /// Reads a program's URL, perhaps relative to `base`, as ``resolving(_:)`` reads those of servers.
    package init(_ text: String, relativeTo base: RequestURL? = nil) throws(LocationDefect) {
        let bytes = Array(text.utf8)
        if let base {
            self = try base.resolving(bytes.span)
            return
        }
        let whole = bytes.span.trimmed(ByteRange(0, bytes.count))
        guard !whole.isEmpty else { throw .empty }
        guard bytes.span.schemeEnd(in: whole) != nil else { throw .relative }
        // The base is unused if there is a scheme.
        let nowhere = Authority(host: "invalid", port: 443, kind: .name)
        self = try RequestURL(isSecure: true, authority: nowhere, target: []).resolving(bytes.span)
    }

    /// The whole URL. Show it through ``ShownText`` only: a query may hold secrets.
    package var description: String { "\(origin)\(String(decoding: target, as: UTF8.self))" }

    /// Resolves a Location relative to this URL (RFC 3986 section 5.2, strict), in linear time.
    ///
    /// Spaces, bytes beyond ASCII and characters not allowed in a URI (``"<>\^`{|}``) are percent-encoded, as in
    /// browsers. A backslash never counts as a slash, and a percent sign stays.
    package func resolving(_ location: Span<UInt8>) throws(LocationDefect) -> RequestURL {
        var reference = location.trimmed(ByteRange(0, location.count))
        guard !reference.isEmpty else { throw .empty }
        guard reference.count <= Self.longest else { throw .tooLong(Self.longest) }
        for offset in reference.offsets where location[offset] < .space || location[offset] == 0x7F {
            throw .controlCharacter(location[offset])
        }
        reference = ByteRange(reference.start, location.first(of: "#", in: reference))

        var isSecure = self.isSecure
        if let colon = location.schemeEnd(in: reference) {
            let scheme = ByteRange(reference.start, colon)
            if location.equals(scheme, ignoringCase: "https") {
                isSecure = true
            } else if location.equals(scheme, ignoringCase: "http") {
                isSecure = false
            } else {
                throw .scheme(String(scheme.text(in: location).prefix(40)))
            }
            reference = ByteRange(colon + 1, reference.end)
            guard location.begins(reference, with: "//") else { throw .noHost }
        }
        if location.begins(reference, with: "//") {
            let start = reference.start + 2
            let end = min(
                location.first(of: "/", in: ByteRange(start, reference.end)),
                location.first(of: "?", in: ByteRange(start, reference.end)))
            let authority = try Self.authority(ByteRange(start, end), in: location, isSecure: isSecure)
            return try Self.with(isSecure, authority, path: location, ByteRange(end, reference.end), after: nil)
        }
        return try Self.with(isSecure, authority, path: location, reference, after: target)
    }

    private static func authority(
        _ range: ByteRange, in bytes: Span<UInt8>, isSecure: Bool
    ) throws(LocationDefect) -> Authority {
        if range.isEmpty { throw .noHost }
        switch Authority.parse(bytes.extracting(range.offsets), defaultPort: isSecure ? 443 : 80) {
        case .success(let authority): return authority
        case .failure(.userInformation): throw .userInformation
        case .failure(let error): throw .host(error)
        }
    }

    /// - Parameter reference: a path with query; the base's path if empty or a query alone.
    private static func with(
        _ isSecure: Bool, _ authority: Authority, path bytes: Span<UInt8>, _ reference: ByteRange, after base: [UInt8]?
    ) throws(LocationDefect) -> RequestURL {
        let question = bytes.first(of: "?", in: reference)
        let query = ByteRange(question, reference.end)
        let written = ByteRange(reference.start, question)
        let slash = UInt8(ascii: "/")
        var path: [UInt8]
        if let base, written.isEmpty {
            path = query.isEmpty ? base : Array(base.prefix { $0 != UInt8(ascii: "?") })
        } else {
            var whole: [UInt8] = []
            if let base, bytes[written.start] != slash {
                let basePath = base.prefix { $0 != UInt8(ascii: "?") }
                whole += basePath[...(basePath.lastIndex(of: slash) ?? basePath.startIndex)]
            }
            whole.appendEncoded(written, of: bytes)
            path = whole.withoutDotSegments()
        }
        path.appendEncoded(query, of: bytes)
        guard path.count <= longest else { throw .tooLong(longest) }
        return RequestURL(isSecure: isSecure, authority: authority, target: path)
    }
}

package enum LocationDefect: Error, Sendable, Hashable, CustomStringConvertible {
    case empty, noHost, userInformation
    /// A program's relative URL, without a base.
    case relative
    /// The value is the limit, in bytes.
    case tooLong(Int)
    case controlCharacter(UInt8)
    case scheme(String)
    case host(AuthorityError)

    package var description: String { explanation(of: "the Location field") }

    /// - Parameter subject: what holds the URL, for the message.
    package func explanation(of subject: String) -> String {
        switch self {
        case .relative: "\(subject) has no scheme: write https://… in front"
        case .empty: "\(subject) is empty"
        case .noHost: "\(subject) is a URL without a host"
        case .userInformation: "\(subject) carries user information (\"@\"), which is not followed"
        case .tooLong(let most): "\(subject) is longer than \(most) bytes, or resolves to a longer URL"
        case .controlCharacter(let byte):
            "\(subject) has a control character (0x\(byte < 16 ? "0" : "")\(String(byte, radix: 16)))"
        case .scheme(let scheme): "\(subject) has the scheme \"\(scheme)\"; only http and https are followed"
        case .host(let error): "\(subject) names no usable host: \(error)"
        }
    }
}

extension Span<UInt8> {
    fileprivate func first(of character: Unicode.Scalar, in range: ByteRange) -> Int {
        let byte = UInt8(ascii: character)
        for offset in range.offsets where self[offset] == byte { return offset }
        return range.end
    }

    fileprivate func begins(_ range: ByteRange, with text: StaticString) -> Bool {
        range.count >= text.utf8CodeUnitCount
            && equals(ByteRange(range.start, range.start + text.utf8CodeUnitCount), ignoringCase: "\(text)")
    }

    /// The index of the colon after a scheme (RFC 3986 section 3.1); nil without a scheme.
    fileprivate func schemeEnd(in range: ByteRange) -> Int? {
        guard !range.isEmpty, self[range.start].isLetter else { return nil }
        let text = ASCIISet.scheme
        for offset in range.offsets where !text.contains(self[offset]) {
            return self[offset] == UInt8(ascii: ":") ? offset : nil
        }
        return nil
    }
}

extension ASCIISet {
    /// The visible characters that RFC 3986 allows nowhere in a URI, and the space.
    fileprivate static let outsideURIs = ASCIISet(" \"<>\\^`{|}")
}

extension [UInt8] {
    fileprivate mutating func appendEncoded(_ range: ByteRange, of bytes: Span<UInt8>) {
        let digits = Array("0123456789ABCDEF".utf8)
        let outside = ASCIISet.outsideURIs
        for offset in range.offsets {
            let byte = bytes[offset]
            if byte >= 0x80 || outside.contains(byte) {
                self += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            } else {
                append(byte)
            }
        }
    }

    /// A path from the root without its `.` and `..` (RFC 3986 section 5.2.4).
    fileprivate func withoutDotSegments() -> [UInt8] {
        let slash = UInt8(ascii: "/")
        let dot = UInt8(ascii: ".")
        var out: [UInt8] = []
        out.reserveCapacity(count)
        /// Where the kept segments begin, each with its slash.
        var starts: [Int] = []
        var position = 0
        while position < count {
            var end = position + 1
            while end < count, self[end] != slash { end += 1 }
            let segment = self[(position + 1)..<end]
            let isLast = end == count
            switch segment {
            case [dot]:
                if isLast { out.append(slash) }
            case [dot, dot]:
                if let start = starts.popLast() { out.removeSubrange(start...) }
                if isLast { out.append(slash) }
            default:
                starts.append(out.count)
                out += self[position..<end]
            }
            position = end
        }
        return out
    }
}
