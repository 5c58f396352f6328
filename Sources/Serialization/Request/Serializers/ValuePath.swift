/// The place of a value among others, for messages: `user[tags][]`.
struct ValuePath {
    private var steps: [String] = []

    mutating func enter(key: String) { steps.append(steps.isEmpty ? key : "[\(key)]") }
    mutating func enterElement() { steps.append("[]") }
    mutating func leave() { steps.removeLast() }

    /// Cut to what a person reads, without control characters.
    var name: String { ShownBytes.text(Array(steps.joined().utf8).span) }

    func inexpressible(_ kind: String, in format: String) -> RequestSerializationError {
        RequestSerializationError(.inexpressible(InexpressibleValue(name: name, format: format, kind: kind)))
    }
}
