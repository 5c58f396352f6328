/// An error of Codable, without the values, which may be secret: its kind, and where it is.
struct CodingProblem: CustomStringConvertible {
    let description: String

    init(_ error: any Error) {
        func place(_ context: [any CodingKey]) -> String {
            let path = context.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined()
            return path.isEmpty ? "at the top" : "at \(path.hasPrefix(".") ? String(path.dropFirst()) : path)"
        }
        description =
            switch error {
            case DecodingError.keyNotFound(let key, let context):
                "\(place(context.codingPath)): the key \(key.stringValue.debugDescription) is missing"
            case DecodingError.typeMismatch(let type, let context):
                "\(place(context.codingPath)): the value is not of the type \(type)"
            case DecodingError.valueNotFound(let type, let context):
                "\(place(context.codingPath)): null instead of the type \(type)"
            case DecodingError.dataCorrupted(let context):
                "\(place(context.codingPath)): the value is not valid"
            case EncodingError.invalidValue(_, let context):
                "\(place(context.codingPath)): the value can't be expressed"
            default: "an error of the type \(type(of: error))"
            }
    }
}
