internal import Glibc

/// Character sets of XML documents that libxml2 doesn't convert itself. glibc loads a file for each.
enum CharacterSets {
    private static let names =
        (1...16).filter { $0 != 12 }.map { "ISO-8859-\($0)" } + (1250...1258).map { "WINDOWS-\($0)" } + [
            "KOI8-R", "KOI8-U", "SHIFT_JIS", "EUC-JP", "ISO-2022-JP", "GB2312", "GBK", "GB18030", "BIG5", "EUC-KR",
            "TIS-620",
            "MACINTOSH", "UTF-7", "UTF-16", "UTF-32",
        ]

    /// Without the module, documents in that set are malformed.
    static func load() {
        // An open converter keeps its module loaded.
        for name in names { _ = iconv_open("UTF-8", name) }
    }
}
