/// A content coding (RFC 9110 section 8.4.1, RFC 7932, RFC 8878).
public enum ContentCoding: String, Sendable, CaseIterable {
    /// The gzip format (RFC 1952).
    case gzip
    /// The zlib format (RFC 1950), or raw deflate (RFC 1951).
    case deflate
    /// The Brotli format (RFC 7932).
    case brotli = "br"
    /// The Zstandard format (RFC 8878).
    case zstd

    /// Most codings that are decoded; even two are rare.
    public static let most = 4

    /// The codings of a Content-Encoding value in the order of application, without `identity`.
    public static func list(_ field: String?) throws(ContentDecodingError) -> [ContentCoding] {
        guard let field else { return [] }
        var codings: [ContentCoding] = []
        for element in field.split(separator: ",") {
            var name = element
            while let last = name.last, last == " " || last == "\t" { name.removeLast() }
            while let first = name.first, first == " " || first == "\t" { name.removeFirst() }
            switch name.lowercased() {
            case "", "identity": continue
            case "x-gzip": codings.append(.gzip)
            case let lower:
                guard let coding = ContentCoding(rawValue: lower) else {
                    var text = String(name)
                    throw .unknownCoding(text.withUTF8 { ShownBytes.text($0.span, most: 40) })
                }
                codings.append(coding)
            }
            guard codings.count <= most else { throw .tooManyCodings(limit: most) }
        }
        return codings
    }
}
