/// Changes to a head besides those required of every hop (RFC 9110 section 7.6). `HeadWriter` applies them in one pass.
///
/// The last edit of a name counts. Code or a validated configuration makes them: no CR, LF or NUL.
package struct HeadEdits: Sendable {
    package enum Action: Sendable {
        /// The field has this value, whatever the message said.
        case set(String)
        case addIfAbsent(String)
        /// Adds a line of the field.
        case add(String)
        case remove
    }

    package struct Edit: Sendable {
        package let name: String
        package let action: Action
        fileprivate let lowercase: String
    }

    package private(set) var list: [Edit] = []

    package init() {}

    package var isEmpty: Bool { list.isEmpty }

    package mutating func append(_ action: Action, _ name: String) {
        list.append(Edit(name: name, action: action, lowercase: name.lowercased()))
    }

    package mutating func append(_ others: HeadEdits) { list += others.list }

    /// Whether the field differs from the message's, or may differ.
    package func changes(_ name: String) -> Bool {
        let name = name.lowercased()
        return list.contains { $0.lowercase == name }
    }

    func drops(_ name: ByteRange, in bytes: Span<UInt8>) -> Bool {
        for edit in list {
            switch edit.action {
            case .addIfAbsent, .add: continue
            case .set, .remove: break
            }
            if bytes.equals(name, ignoringCase: edit.lowercase) { return true }
        }
        return false
    }

    /// Appends the added fields to `out`, after the received ones.
    func write(beside fields: [HeadField], in bytes: Span<UInt8>, into out: inout [UInt8]) {
        for (index, edit) in list.enumerated() {
            let value: String
            switch edit.action {
            case .remove: continue
            case .set(let text), .add(let text): value = text
            case .addIfAbsent(let text):
                if fields.contains(where: { bytes.equals($0.name, ignoringCase: edit.lowercase) }) { continue }
                value = text
            }
            // A later edit of the same field decides alone.
            if list[(index + 1)...].contains(where: { $0.lowercase == edit.lowercase }) { continue }
            out.append(contentsOf: edit.name.utf8)
            out.append(contentsOf: ": ".utf8)
            out.append(contentsOf: value.utf8)
            out.append(contentsOf: "\r\n".utf8)
        }
    }
}
