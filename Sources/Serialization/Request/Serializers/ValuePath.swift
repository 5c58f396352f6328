/// Where a value stands among others, for messages: `user[tags][]`.
struct ValuePath {
    private var steps: [String] = []

    mutating func enter(key: String) { steps.append(steps.isEmpty ? key : "[\(key)]") }
    mutating func enterElement() { steps.append("[]") }
    mutating func leave() { steps.removeLast() }

    /// Cut to what a person reads, without control characters.
    var name: String {
        let whole = steps.joined()
        var shown = ""
        for scalar in whole.unicodeScalars.prefix(100) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                shown += scalar.escaped(asASCII: true)
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown.unicodeScalars.count < whole.unicodeScalars.count && whole.unicodeScalars.count > 100 ? shown + "…" : shown
    }

    func inexpressible(_ kind: String, in format: String) -> RequestSerializationError {
        RequestSerializationError(.inexpressible(InexpressibleValue(name: name, format: format, kind: kind)))
    }
}
