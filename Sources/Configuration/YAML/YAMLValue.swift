internal import PinproxyHTTPWire

/// One value of a YAML file with its place. Aliases are followed and merge keys applied. The reader decides the type of
/// a scalar, not its spelling: `no` can be a name and `0755` a string.
struct YAMLValue {
    enum Content {
        /// `null`, `~`, or nothing at all.
        case null
        case scalar(String)
        case sequence([YAMLValue])
        case mapping([YAMLPair])
        /// `!!set`: scalars without an order, and null; none twice.
        case set([YAMLValue])
    }

    var content: Content
    /// A scalar without quotes, block indicator or tag: if it looks like a number, it may be one.
    var isWord = false
    /// Both from 1; columns count Unicode scalars.
    var line: Int
    var column: Int

    /// The kind of value, as part of a sentence.
    var kind: String {
        switch content {
        case .null: "nothing"
        case .scalar(let text): text.utf8.count > 80 ? "a long text" : "\"\(ShownText(text))\""
        case .sequence: "a list"
        case .mapping: "a mapping"
        case .set: "a set"
        }
    }

    var isNull: Bool {
        if case .null = content { true } else { false }
    }
}

struct YAMLPair {
    var key: String
    var line: Int
    var column: Int
    var value: YAMLValue
}
