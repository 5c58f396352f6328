/// One part of a multipart/form-data body (RFC 7578).
public struct MultipartPart: Sendable, Hashable {
    /// The content of a part.
    public enum Content: Sendable, Hashable {
        /// A text, without a content type.
        case value(String)
        /// Bytes (`appendPartWithFileData:name:fileName:mimeType:`).
        /// - Parameters:
        ///   - fileName: the part's `filename`; nil: no such parameter.
        ///   - type: nil: by the ending of the file's name, else `application/octet-stream`; without a name, none.
        case data([UInt8], fileName: String?, type: MediaType?)
        /// - Parameters:
        ///   - path: read when the body is sent.
        ///   - name: `filename` of the part.
        ///   - type: nil: by the ending of the name, else `application/octet-stream`.
        case file(path: String, name: String, type: MediaType?)
    }

    /// The name of the field in the form.
    public let name: String
    /// The content.
    public let content: Content

    /// - Throws: what is wrong with the name, or the file's.
    public init(name: String, content: Content) throws(InvalidValue) {
        guard !name.isEmpty else { throw InvalidValue("the name of a part is empty") }
        guard !name.utf8.contains(where: \.isControl) else {
            throw InvalidValue("\(name.debugDescription) contains a control character")
        }
        let fileName: String? =
            switch content {
            case .value: nil
            case .data(_, let fileName, _): fileName
            case .file(_, let fileName, _): fileName
            }
        if let fileName {
            guard !fileName.isEmpty else { throw InvalidValue("the name of a file is empty") }
            guard !fileName.utf8.contains(where: \.isControl) else {
                throw InvalidValue("\(fileName.debugDescription) contains a control character")
            }
        }
        self.name = name
        self.content = content
    }
}
