/// The slips that people make most often in YAML, in words that say what to write.
struct YAMLSlip {
    /// libyaml's words.
    let problem: String
    let context: (text: String, line: Int)?
    /// The line at which libyaml noticed it, from 1.
    let line: Int
    let column: Int
    let text: MarkedText

    /// Nil for other errors.
    var message: String? {
        let before = context?.text ?? ""
        if before.contains("alias") || problem.contains("undefined alias") {
            return "a value that begins with * must be quoted, e.g. \"*.example.com\""
        }
        let isIndentedWithTab = here.prefix { $0 == " " || $0 == "\t" }.contains("\t")
        if isIndentedWithTab, problem.contains("cannot start any token") || problem.contains("tab character") {
            return "the line is indented with a tab; YAML takes only spaces there"
        }
        if problem.contains("cannot start any token") {
            return "a value that begins with one of @ ` % must be quoted"
        }
        if here.contains("[::") || here.wholeMatch(of: /.*\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\].*/) != nil {
            return "an IPv6 address in brackets must be quoted, e.g. \"[::1]:7467\""
        }
        if let slip = spaceless ?? dashed { return slip }
        if problem.contains("mapping values are not allowed") {
            return "a value with \": \" in it must be quoted, and keys of one mapping start in the same column"
        }
        return unclosed ?? indentation
    }

    private var here: String { text.line(line) }
    private var since: String { context.map { $0.line == line ? "in this line" : "in line \($0.line)" } ?? "above" }

    /// `match:api.example.com` is one word, which no value may follow.
    private var spaceless: String? {
        guard problem.contains("mapping values are not allowed") || problem.contains("could not find expected ':'")
        else { return nil }
        let candidates = [context?.line, line - 1, line].compactMap(\.self).filter { $0 > 0 }
        for number in candidates {
            if let key = Self.spaceless(text.line(number)) {
                return "there is no space after the colon\(number == line ? "" : " in line \(number)"): write \(key): …"
            }
        }
        guard problem.contains("could not find expected ':'") else { return nil }
        if let number = context?.line, text.line(number).prefixMatch(of: /\s*-[^\s-]/) != nil {
            return "there is no space after the dash that begins an element, \(since)"
        }
        return "there is no colon after the key \(since); write KEY: VALUE"
    }

    /// `-match: api.example.com` is a key that begins with a dash, in another column than those below it.
    private var dashed: String? {
        guard problem.contains("mapping values are not allowed") || problem.contains("did not find expected key") else {
            return nil
        }
        for number in [line - 1, line] where number > 0 {
            guard let match = text.line(number).prefixMatch(of: /\s*-([a-z_0-9]+:)\s/) else { continue }
            return
                "there is no space after the dash\(number == line ? "" : " in line \(number)"): "
                + "write - \(match.output.1)"
        }
        return nil
    }

    /// The key of `KEY:VALUE`, after the indentation and the dashes of lists. A URL is not one. The value may be a
    /// secret: no message quotes it.
    private static func spaceless(_ line: String) -> Substring? {
        line.wholeMatch(of: /[ -]*([a-z_0-9]+):(?!\/\/)[^\s:].*/)?.output.1
    }

    /// What to write for a word that was to be a mapping, or for its key without a value; nil: it is no such slip.
    static func colonHint(_ word: String) -> String? {
        spaceless(word).map { "there is no space after the colon: write \($0): …" }
    }

    /// What to write for a word that was to be an element, or several, of a list; nil: it is no such slip.
    static func dashHint(_ word: String) -> String? {
        word.prefixMatch(of: /-[^\s-]/).map { _ in "there is no space after the dash that begins an element" }
    }

    private var unclosed: String? {
        if problem.contains("expected ',' or ']'") {
            return "the list that begins with [ \(since) isn't closed: ] is missing"
        }
        if problem.contains("expected ',' or '}'") {
            return "the mapping that begins with { \(since) isn't closed: } is missing"
        }
        if context?.text.contains("quoted scalar") == true,
            problem.contains("end of stream") || problem.contains("document indicator")
        {
            return "the quotation mark \(since) isn't closed"
        }
        return nil
    }

    private var indentation: String? {
        if problem.contains("did not find expected key") {
            guard here.prefix(column - 1).allSatisfy({ $0 == " " }) else {
                return "nothing can follow the value that ends before this; quote all of it"
            }
            return
                """
                the line isn't indented like the keys of its mapping, which begins \(since): they start in the same \
                column
                """
        }
        if problem.contains("did not find expected '-' indicator") {
            return
                """
                the line isn't indented like the elements of its list, which begins \(since): they start with \"- \" \
                in the same column
                """
        }
        return nil
    }
}
