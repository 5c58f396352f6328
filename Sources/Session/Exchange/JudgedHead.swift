import HTTPWire
import Serialization

extension Serialization.ResponseHead {
    /// What response rules look at, of a head as it was received. A field that came twice counts as the list that both
    /// make (RFC 9110 section 5.3).
    init(_ view: borrowing ResponseView, isAnswerToHEAD: Bool) {
        let bytes = view.bytes
        var type: ContentType?
        var codings: [String] = []
        var types: [String] = []
        for field in view.head.fields {
            switch field.id {
            case .contentType where type == nil:
                type = ContentType(bytes.extracting(field.value.offsets))
                types.append(field.value.text(in: bytes))
            case .contentType:
                types.append(field.value.text(in: bytes))
                type = ContentType(types.joined(separator: ", "))
            case .contentEncoding: codings.append(field.value.text(in: bytes))
            default: break
            }
        }
        let length: Int? = if case .length(let length) = view.head.framing { Int(clamping: length) } else { nil }
        self.init(
            status: view.head.status, isAnswerToHEAD: isAnswerToHEAD, contentType: type,
            contentEncoding: codings.isEmpty ? nil : codings.joined(separator: ", "), contentLength: length)
    }
}
