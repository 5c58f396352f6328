extension YAMLSyntaxError {
    /// The error as a sentence, with a hint where people commonly run into it, and its place if it has one.
    func explained(in text: MarkedText) -> (place: YAMLEvents.Mark?, message: String) {
        switch self {
        case .memory: return (nil, "not valid YAML: there is not enough memory to read it")
        case .character(let problem, let offset): return (text.mark(atByte: offset), "not valid YAML: \(problem)")
        case .structure(let problem, let mark, let context):
            var message = problem.trimmingWhitespace
            if let context {
                let place = context.line == mark.line ? "" : " in line \(context.line)"
                message = "\(context.text.trimmingWhitespace)\(place), \(message)"
            }
            let hint = Self.hint(problem, context?.text ?? "", line: text.line(mark.line))
            return (mark, "not valid YAML: \(message)\(hint.map { "; \($0)" } ?? "")")
        }
    }

    private static func hint(_ problem: String, _ context: String, line: String) -> String? {
        if context.contains("alias") || problem.contains("undefined alias") {
            return "a value that begins with * must be quoted, e.g. \"*.example.com\""
        }
        if problem.contains("cannot start any token") {
            if line.prefix(while: { $0 == " " || $0 == "\t" }).contains("\t") {
                return "indent with spaces: YAML allows no tabs there"
            }
            return "a value that begins with one of @ ` % must be quoted"
        }
        if line.contains("[::") || line.wholeMatch(of: /.*\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\].*/) != nil {
            return "an IPv6 address in brackets must be quoted, e.g. \"[::1]:7467\""
        }
        if problem.contains("mapping values are not allowed") {
            return "a value with \": \" in it must be quoted, and keys of one mapping start in the same column"
        }
        if problem.contains("another document") { return "only one document is read" }
        return nil
    }
}

extension String {
    /// libyaml ends some of its texts with a space or a line feed.
    fileprivate var trimmingWhitespace: String {
        var text = self[...]
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}
