/// A language of Accept-Language, without its quality: `de-AT`, `en`, `*` (RFC 4647 section 2.1).
public struct LanguageRange: Sendable, Hashable, CustomStringConvertible {
    /// Most ranges of a field, as in AFNetworking, with qualities from 1 down by 0.1.
    public static let most = 6

    /// The range as written.
    public let description: String

    /// - Throws: if it isn't a language range (RFC 4647 section 2.1).
    public init(_ text: String) throws(InvalidValue) {
        let subtags = text.split(separator: "-", omittingEmptySubsequences: false)
        let isTag = subtags.enumerated().allSatisfy { index, subtag in
            (1...8).contains(subtag.utf8.count)
                && subtag.utf8.allSatisfy { byte in
                    let letter = byte | 0x20
                    return (0x61...0x7A).contains(letter) || (index > 0 && (0x30...0x39).contains(byte))
                }
        }
        guard isTag || text == "*" else {
            let hint =
                text.contains(";")
                ? "leave the quality out: it follows from the order"
                : "write a tag as de-AT or en"
            throw InvalidValue("\"\(text)\" is not a language; \(hint)")
        }
        description = text
    }

    /// The languages that an environment prefers: `LANGUAGE`, else the locale of `LC_ALL`, `LC_MESSAGES` or `LANG`.
    /// Locales that name no language, such as `C`, give none; as does any other locale with `LANGUAGE`.
    public static func preferred(in environment: [String: String]) -> [LanguageRange] {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        guard let locale, let language = LanguageRange(locale: locale) else { return [] }
        var languages: [LanguageRange] = []
        for name in (environment["LANGUAGE"] ?? "").split(separator: ":") {
            guard languages.count < most else { break }
            guard let known = LanguageRange(locale: String(name)), !languages.contains(known) else { continue }
            languages.append(known)
        }
        return languages.isEmpty ? [language] : languages
    }

    /// Converts the name of a POSIX locale: `de_AT.UTF-8@euro` is `de-AT`.
    private init?(locale: String) {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        guard name != "C", name != "POSIX", name != "*" else { return nil }
        guard let range = try? LanguageRange(name.map { $0 == "_" ? "-" : String($0) }.joined()) else { return nil }
        self = range
    }

    /// The Accept-Language value (RFC 9110 section 12.5.4) for the first six languages, with qualities from 1 down by
    /// 0.1 as AFHTTPRequestSerializer writes it: `de-AT;q=1, de;q=0.9, en;q=0.8`; nil for none.
    public static func acceptLanguage(_ languages: [LanguageRange]) -> HeaderValue? {
        guard !languages.isEmpty else { return nil }
        let ranges = languages.prefix(most).enumerated().map { index, language in
            "\(language);q=\(index == 0 ? "1" : "0.\(10 - index)")"
        }
        return HeaderValue(valid: ranges.joined(separator: ", "))
    }
}
