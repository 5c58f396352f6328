internal import PinproxyConfiguration
internal import PinproxySecurity

/// The pin file as lines: comments, order and spelling stay, and entries are added between them. An entry in brackets
/// is not touched; a comment says what to add there.
struct PinFileLines {
    private(set) var text: EditedLines
    private let lines: [String]

    init(_ contents: String) {
        text = EditedLines(contents)
        lines = text.lines.map { $0.hasSuffix("\r") ? String($0.unicodeScalars.dropLast()) : $0 }
    }

    // MARK: An entry that is there

    mutating func add(_ addition: LearnedPins.Addition) {
        let line = addition.entry.line - 1
        guard let entry = entry(around: line) else { return advise(addition, before: line) }
        let pins = addition.pins.map { "- \($0.pin)   # \($0.remark)" }
        if let list = entry.keys["pins"] {
            guard value(of: list).isEmpty, let (last, indent) = items(after: list, in: entry) else {
                return advise(addition, before: line)
            }
            text.apply(.init(at: last + 1, inserting: pins.map { indented($0, by: indent) }))
        } else {
            addPins(pins, to: entry, enforcement: addition.entry.policy.enforcement)
        }
    }

    /// Adds pins to an entry without pins, instead of its `pinning: none`.
    private mutating func addPins(_ pins: [String], to entry: Block, enforcement: Enforcement) {
        var fresh = ["pinning: public-key"]
        if entry.keys["enforcement"] == nil { fresh.append("enforcement: report") }
        fresh.append("pins:")
        let block = fresh.map { indented($0, by: entry.indent) } + pins.map { indented($0, by: entry.indent + 2) }
        if let old = entry.keys["pinning"], old != entry.lines.lowerBound {
            text.apply(.init(at: old, removing: 1, inserting: block))
        } else if entry.keys["pinning"] == nil {
            text.apply(.init(at: entry.matchLine + 1, inserting: block))
        }
    }

    /// The file may have become shorter since the entry was read from it.
    private mutating func advise(_ addition: LearnedPins.Addition, before line: Int) {
        guard lines.indices.contains(line) else { return }
        let indent = lines[line].prefix { $0 == " " }.count
        let comment =
            ["# The pins of \(addition.entry.pattern) don't include the recorded keys, which can't be added as lines:"]
            + addition.pins.map { "#   - \($0.pin)   # \($0.remark)" }
        text.apply(.init(at: line, inserting: comment.map { indented($0, by: indent) }))
    }

    // MARK: New entries

    mutating func append(_ entries: [PinEntryText]) {
        guard !entries.isEmpty else { return }
        let entries = entries.map(withKeysOfWildcard)
        guard let hosts = lines.firstIndex(where: { $0.hasPrefix("hosts:") }) else {
            return text.apply(.init(at: lines.count, inserting: ["", "hosts:"] + written(entries, indent: 2)))
        }
        switch value(of: hosts) {
        case "":
            let (end, indent) = endOfEntries(after: hosts)
            text.apply(.init(at: end, inserting: written(entries, indent: indent)))
        case "[]", "null", "~":
            text.apply(.init(at: hosts, removing: 1, inserting: ["hosts:"] + written(entries, indent: 2)))
        default:
            let comment = ["", "# Entries that were learned; to be added to hosts:"] + written(entries, indent: 0)
            text.apply(
                .init(at: lines.count, inserting: comment.map { $0.isEmpty || $0.hasPrefix("#") ? $0 : "# " + $0 }))
        }
    }

    /// Keys that an entry with its own pins doesn't inherit.
    private static let ownKeys: Set<String> = [
        "match", "action", "pinning", "pins", "enforcement", "enforce_from", "enforce_after", "stage",
    ]

    /// The entry with the other keys of its wildcard, line by line as written; a remark if they can't be separated.
    private func withKeysOfWildcard(_ entry: PinEntryText) -> PinEntryText {
        guard let wildcard = entry.wildcard else { return entry }
        var entry = entry
        guard let block = self.entry(around: wildcard.line - 1) else {
            entry.remarks.append("copy the other keys of line \(wildcard.line) here: entries are not merged")
            return entry
        }
        let starts = block.keys.values.sorted()
        for (name, start) in block.keys.sorted(by: { $0.value < $1.value }) where !Self.ownKeys.contains(name) {
            var end = starts.first { $0 > start } ?? block.lines.upperBound
            while end > start + 1, column(of: end - 1) == nil { end -= 1 }
            let first = lines[start].drop { $0 == " " || $0 == "-" }
            entry.more += [String(first)] + lines[(start + 1)..<end].map { String($0.dropFirst(block.indent)) }
        }
        return entry
    }

    private func written(_ entries: [PinEntryText], indent: Int) -> [String] {
        entries.flatMap { entry in
            [""] + entry.yaml.split(separator: "\n").map { indented(String($0.dropFirst(2)), by: indent) }
        }
    }

    /// The line after the last entry and the comments close to it, and the indentation of entries.
    private func endOfEntries(after hosts: Int) -> (end: Int, indent: Int) {
        var end = hosts + 1
        var indent: Int?
        for index in lines.indices.dropFirst(hosts + 1) {
            guard let column = column(of: index) else { continue }
            let isEntry = lines[index].dropFirst(column).hasPrefix("-")
            if column == 0, !isEntry { break }
            if indent == nil, isEntry { indent = column }
            end = index + 1
        }
        // Comments directly after an entry belong to it.
        while end < lines.count, lines[end].drop(while: { $0 == " " }).hasPrefix("#") { end += 1 }
        return (end, indent ?? 2)
    }

    // MARK: Lines

    /// An entry with one key per line.
    private struct Block {
        let lines: Range<Int>
        let matchLine: Int
        let indent: Int
        let keys: [String: Int]
    }

    private func entry(around match: Int) -> Block? {
        guard lines.indices.contains(match), !lines[match].contains("\t"), let key = key(in: match), key.name == "match"
        else { return nil }
        // Up to the line with the dash.
        var start = match
        while !isDashed(start, keysAt: key.column) {
            guard start > 0, column(of: start).map({ $0 >= key.column }) ?? true else { return nil }
            start -= 1
        }
        var end = start + 1
        while end < lines.count, column(of: end).map({ $0 >= key.column }) ?? true { end += 1 }
        var keys: [String: Int] = [:]
        for index in start..<end {
            if let found = self.key(in: index), found.column == key.column { keys[found.name] = index }
        }
        return Block(lines: start..<end, matchLine: match, indent: key.column, keys: keys)
    }

    /// The key at the start of a line, perhaps after a dash, and its column.
    private func key(in index: Int) -> (name: String, column: Int)? {
        let content = lines[index].drop { $0 == " " || $0 == "-" }
        let name = content.prefix { ($0.isASCII && $0.isLetter) || $0 == "_" }
        let rest = content.dropFirst(name.count)
        guard !name.isEmpty, rest.first == ":", rest.dropFirst().first.map({ $0 == " " }) ?? true else { return nil }
        return (String(name), lines[index].count - content.count)
    }

    private func isDashed(_ index: Int, keysAt column: Int) -> Bool {
        key(in: index)?.column == column && lines[index].prefix(column).contains("-")
    }

    /// The value after a line's key, without a comment.
    private func value(of index: Int) -> String {
        let value = lines[index].drop { $0 != ":" }.dropFirst()
        let bare = value.drop { $0 == " " }
        if bare.hasPrefix("#") { return "" }
        let end = bare.firstRange(of: " #")?.lowerBound ?? bare.endIndex
        return bare[..<end].split(separator: " ").joined(separator: " ")
    }

    /// The last line of the list below a key, and the column of its dashes.
    private func items(after key: Int, in entry: Block) -> (last: Int, indent: Int)? {
        var found: (last: Int, indent: Int)?
        for index in (key + 1)..<max(key + 1, entry.lines.upperBound) {
            guard let column = column(of: index) else { continue }
            let isItem = lines[index].dropFirst(column).hasPrefix("- ")
            guard let begun = found else {
                guard isItem, column >= entry.indent else { return nil }
                found = (index, column)
                continue
            }
            guard column > begun.indent || (isItem && column == begun.indent) else { break }
            found?.last = index
        }
        return found
    }

    /// The column of a line's text; nil for blank lines and comments.
    private func column(of index: Int) -> Int? {
        let content = lines[index].drop { $0 == " " }
        return content.isEmpty || content.hasPrefix("#") ? nil : lines[index].count - content.count
    }

    private func indented(_ line: String, by count: Int) -> String {
        line.isEmpty ? line : String(repeating: " ", count: count) + line
    }
}
