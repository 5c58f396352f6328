/// A text by its lines, and changes of it that `patch` and `git apply` understand.
struct EditedLines {
    /// Replaces lines, perhaps none, by others.
    struct Edit {
        /// The first line that goes, or before which lines are put; counted from 0.
        let line: Int
        let removes: Int
        let lines: [String]

        init(at line: Int, removing removes: Int = 0, inserting lines: [String]) {
            self.line = line
            self.removes = removes
            self.lines = lines
        }
    }

    let lines: [String]
    /// False if the last line lacks its line break.
    let endsWithBreak: Bool
    private let lineEnd: String
    private(set) var edits: [Edit] = []

    init(_ text: String) {
        // By scalars: Swift takes CR LF for one character.
        var lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
        endsWithBreak = lines.last?.isEmpty == true
        if endsWithBreak { lines.removeLast() }
        self.lines = lines
        lineEnd = lines.first?.unicodeScalars.last == "\r" ? "\r" : ""
    }

    /// Edits may be given in any order, and must not overlap.
    mutating func apply(_ edit: Edit) {
        let lines = edit.lines.map { $0 + lineEnd }
        let place = edits.firstIndex { $0.line > edit.line } ?? edits.endIndex
        edits.insert(Edit(at: edit.line, removing: edit.removes, inserting: lines), at: place)
    }

    /// The unified diff, with three lines of context; empty without edits.
    func diff(of name: String) -> String {
        guard !edits.isEmpty else { return "" }
        var text = "--- \(name)\n+++ \(name)\n"
        var shift = 0
        var rest = edits[...]
        while let first = rest.first {
            var hunk: [Edit] = [first]
            rest = rest.dropFirst()
            while let next = rest.first, let last = hunk.last,
                next.line - (last.line + last.removes) <= 2 * Self.context
            {
                hunk.append(next)
                rest = rest.dropFirst()
            }
            text += self.hunk(hunk, shift: &shift)
        }
        return text
    }

    private static let context = 3

    private func hunk(_ edits: [Edit], shift: inout Int) -> String {
        let begin = max(0, edits[0].line - Self.context)
        let last = edits[edits.count - 1]
        let end = min(lines.count, last.line + last.removes + Self.context)
        var body = ""
        var position = begin
        func put(_ mark: Character, _ line: String, isLast: Bool = false) {
            body += "\(mark)\(line)\n"
            if isLast { body += "\\ No newline at end of file\n" }
        }
        func keep(to line: Int) {
            while position < line {
                let isLast = position == lines.count - 1 && !endsWithBreak
                if isLast, edits.contains(where: { $0.line == lines.count && !$0.lines.isEmpty }) {
                    // The text added after it needs the line break that it lacks.
                    put("-", lines[position], isLast: true)
                    put("+", lines[position])
                } else {
                    put(" ", lines[position], isLast: isLast)
                }
                position += 1
            }
        }
        for edit in edits {
            keep(to: edit.line)
            for _ in 0..<edit.removes {
                put("-", lines[position], isLast: position == lines.count - 1 && !endsWithBreak)
                position += 1
            }
            for line in edit.lines { put("+", line) }
        }
        keep(to: end)
        let added = edits.reduce(0) { $0 + $1.lines.count }
        let removed = edits.reduce(0) { $0 + $1.removes }
        let (old, new) = (end - begin, end - begin + added - removed)
        // A range of no lines is named by the line before it.
        let header =
            "@@ -\(old == 0 ? begin : begin + 1),\(old) +\(new == 0 ? begin + shift : begin + shift + 1),\(new) @@\n"
        shift += added - removed
        return header + body
    }
}
