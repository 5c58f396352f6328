extension YAMLSyntaxError {
    /// The error as a sentence, in words of our own where people commonly run into it (``YAMLSlip``), and its place if
    /// it has one.
    func explained(in text: MarkedText) -> (place: YAMLEvents.Mark?, message: String) {
        switch self {
        case .memory: return (nil, "not valid YAML: there is not enough memory to read it")
        case .character(let problem, let offset): return (text.mark(atByte: offset), "not valid YAML: \(problem)")
        case .structure(let problem, let mark, let context):
            if let own = YAMLSlip(problem: problem, context: context, line: mark.line, column: mark.column, text: text)
                .message
            {
                return (mark, own)
            }
            var message = problem.trimmingWhitespace
            if let context {
                let place = context.line == mark.line ? "" : " in line \(context.line)"
                message = "\(context.text.trimmingWhitespace)\(place), \(message)"
            }
            let hint = problem.contains("another document") ? "; only one document is read" : ""
            return (mark, "not valid YAML: \(message)\(hint)")
        }
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
