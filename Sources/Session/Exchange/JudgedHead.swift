import PinproxyHTTPWire
import PinproxySerialization

extension PinproxySerialization.ResponseHead {
    /// The head as response rules see it; repeated fields are one list (RFC 9110 section 5.3).
    init(_ view: borrowing ResponseView) {
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
        let body: Body =
            switch view.head.bodyLength {
            case .none: .none
            case .known(let length): .length(Int(clamping: length))
            case .unknown: .unknownLength
            }
        self.init(
            status: view.head.status, contentType: type,
            contentEncoding: codings.isEmpty ? nil : codings.joined(separator: ", "), body: body)
    }
}
