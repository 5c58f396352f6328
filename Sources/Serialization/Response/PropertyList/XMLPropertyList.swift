/// Reads a property list in XML in one pass, in linear time, as Foundation's reader does: a real without a fraction is
/// an integer, data ignores foreign characters, a date may have a thirteenth month. It also takes every XML encoding, a
/// list without `plist`, and an empty `<string/>` at its end.
final class XMLPropertyList: XMLEvents {
    /// The value, which has no meaning if it is only checked (`keepsValue` is false).
    static func read(_ body: [UInt8], keepsValue: Bool) throws(BodyDefect) -> PropertyListValue {
        let list = XMLPropertyList(keepsValue: keepsValue)
        try XMLDocument.read(body, list)
        guard let value = list.value else { throw BodyDefect("it has no value") }
        return value
    }

    private enum Kind { case wrapper, array, dictionary }

    private struct Container {
        let kind: Kind
        var hasValue = false
        var list: [PropertyListValue] = []
        var dictionary: [String: PropertyListValue] = [:]
        /// The key that waits for its value.
        var key: String?
    }

    private enum Leaf: String {
        case string, key, integer, real, date, data
        case yes = "true"
        case no = "false"
    }

    private let keepsValue: Bool
    private var value: PropertyListValue?
    private var containers: [Container] = []
    private var leaf: Leaf?
    private var text: [UInt8] = []

    private(set) var objection: String?
    var allowsEntities: Bool { false }

    private init(keepsValue: Bool) { self.keepsValue = keepsValue }

    // MARK: Events

    func began(_ element: String) {
        if let leaf { return object("it has an element <\(Self.shown(element))> inside <\(leaf.rawValue)>") }
        switch element {
        case "plist": open(.wrapper)
        case "array": open(.array)
        case "dict": open(.dictionary)
        default:
            guard let leaf = Leaf(rawValue: element) else {
                return object("it has an unknown tag \(Self.shown(element))")
            }
            begin(leaf)
        }
    }

    func ended(_ element: String) {
        if leaf != nil { return endLeaf() }
        guard let container = containers.popLast() else { return }
        switch container.kind {
        case .wrapper: if !container.hasValue { object("<plist> is empty") }
        case .array: take(.array(container.list))
        case .dictionary:
            guard container.key == nil else { return object("Value missing for a key inside <dict>") }
            take(Self.reference(container.dictionary) ?? .dictionary(container.dictionary))
        }
    }

    func found(text piece: UnsafeBufferPointer<UInt8>) {
        switch leaf {
        case nil:
            guard piece.allSatisfy(\.isXMLSpace) else { return object("it has text outside of a value") }
        case .yes, .no: object("<true/> or <false/> has contents")
        default: text += piece
        }
    }

    func foundAside() {
        if let leaf { object("it has a comment or processing instruction inside <\(leaf.rawValue)>") }
    }

    // MARK: Structure

    private func object(_ explanation: String) {
        if objection == nil { objection = explanation }
    }

    private func open(_ kind: Kind) {
        guard isValueExpected() else { return }
        containers.append(Container(kind: kind))
    }

    private func begin(_ leaf: Leaf) {
        if let last = containers.last, last.kind == .dictionary, last.key == nil {
            guard leaf == .key else { return object("a value inside <dict> has no key") }
        } else if !isValueExpected() {
            return
        }
        self.leaf = leaf
        text.removeAll(keepingCapacity: text.capacity <= 4096)
    }

    private func isValueExpected() -> Bool {
        guard let last = containers.last else { return true }
        switch last.kind {
        case .wrapper: if last.hasValue { object("<plist> has more than one value") }
        case .array: break
        case .dictionary: if last.key == nil { object("a value inside <dict> has no key") }
        }
        return objection == nil
    }

    private func take(_ value: PropertyListValue) {
        guard let last = containers.indices.last else {
            self.value = value
            return
        }
        containers[last].hasValue = true
        switch containers[last].kind {
        case .wrapper:
            // It adds nothing: its value belongs to what is around it.
            let wrapper = containers.removeLast()
            take(value)
            containers.append(wrapper)
        case .array: if keepsValue { containers[last].list.append(value) }
        case .dictionary:
            if keepsValue, let key = containers[last].key { containers[last].dictionary[key] = value }
            containers[last].key = nil
        }
    }

    private func endLeaf() {
        guard let leaf else { return }
        self.leaf = nil
        if leaf == .key, let last = containers.indices.last, containers[last].kind == .dictionary,
            containers[last].key == nil
        {
            containers[last].key = keepsValue ? String(decoding: text, as: UTF8.self) : ""
            return
        }
        guard let value = read(leaf) else { return object("a number, a date or data that can't be read") }
        take(value)
    }

    private func read(_ leaf: Leaf) -> PropertyListValue? {
        switch leaf {
        case .string, .key: .string(keepsValue ? String(decoding: text, as: UTF8.self) : "")
        case .yes: .bool(true)
        case .no: .bool(false)
        case .integer: PropertyListText.integer(text)
        case .real: PropertyListText.real(text)
        case .date: PropertyListText.date(text)
        case .data: .data(keepsValue ? PropertyListText.data(text) : [])
        }
    }

    /// Reads XML's form of a reference in a keyed archive.
    private static func reference(_ dictionary: [String: PropertyListValue]) -> PropertyListValue? {
        guard dictionary.count == 1, case .integer(let number)? = dictionary["CF$UID"] else { return nil }
        return UInt64(exactly: number).map { .reference($0) }
    }

    private static func shown(_ name: String) -> String { ShownBytes.text(Array(name.utf8).span, most: 40) }
}
