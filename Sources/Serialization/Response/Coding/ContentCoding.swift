/// A content coding (RFC 9110 section 8.4.1, RFC 7932, RFC 8878).
public enum ContentCoding: String, Sendable, CaseIterable {
    /// RFC 1952.
    case gzip
    /// RFC 1950, or RFC 1951 without its wrapping.
    case deflate
    /// RFC 7932.
    case brotli = "br"
    /// RFC 8878.
    case zstd

    /// As many as are undone at most; more than one is rare already.
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
