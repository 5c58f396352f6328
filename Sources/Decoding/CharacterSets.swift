internal import Glibc

/// The character sets in which XML is found, besides those that libxml2 knows itself. glibc loads a file for each.
enum CharacterSets {
    private static let names =
        (1...16).filter { $0 != 12 }.map { "ISO-8859-\($0)" } + (1250...1258).map { "WINDOWS-\($0)" } + [
            "KOI8-R", "KOI8-U", "SHIFT_JIS", "EUC-JP", "ISO-2022-JP", "GB2312", "GBK", "GB18030", "BIG5", "EUC-KR",
            "TIS-620",
            "MACINTOSH", "UTF-7", "UTF-16", "UTF-32",
        ]

    /// Those that aren't installed are refused when they come.
    static func load() {
        // They stay loaded as long as they are open.
        for name in names { _ = iconv_open("UTF-8", name) }
    }
}
