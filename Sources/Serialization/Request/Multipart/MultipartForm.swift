/// A form in parts (RFC 7578) that isn't opened yet. Names and file names are escaped as by browsers (`%22`, `%0D`,
/// `%0A`); AFNetworking's unescaped ones can add fields.
public struct MultipartForm: Sendable, Hashable {
    /// The separator of the parts; no part may contain it.
    public let boundary: String
    private var parts: [Part] = []

    private struct Part: Sendable, Hashable {
        /// The name in UTF-8, not escaped.
        let name: [UInt8]
        let content: MultipartPart.Content
    }

    /// - Parameters:
    ///   - parameters: sent first, with the names that they would have in a query. Null is an empty part.
    ///   - parts: sent after them.
    ///   - boundary: nil: a random one.
    public init(parameters: [ParameterValue.Pair] = [], parts: [MultipartPart] = [], boundary: String? = nil) {
        var random = SystemRandomNumberGenerator()
        self.boundary = boundary ?? Self.boundary(using: &random)
        ParameterLeaves { $1 += $0.utf8 }.forEach(of: parameters) { name, text in
            self.parts.append(Part(name: name, content: .value(text ?? "")))
        }
        self.parts += parts.map { Part(name: Array($0.name.utf8), content: $0.content) }
    }

    /// `Boundary+` and 16 hexadecimal digits.
    public static func boundary(using random: inout some RandomNumberGenerator) -> String {
        let digits = String(random.next() as UInt64, radix: 16, uppercase: true)
        return "Boundary+" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// A form without parts has no body.
    public var isEmpty: Bool { parts.isEmpty }

    /// The value of Content-Type.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// Opens the files. Blocks on the disk. Throws if one is missing, unreadable or not a regular file.
    public func open() throws(RequestSerializationError) -> MultipartBody { try open(isWhole: true) }

    /// - Parameter isWhole: false: other parts follow, each after an ``opening(of:fileName:_:isFirst:)``.
    package func open(isWhole: Bool) throws(RequestSerializationError) -> MultipartBody {
        var segments: [MultipartBody.Segment] = []
        var pending: [UInt8] = []
        for (index, part) in parts.enumerated() {
            append(openingOf: part.name, isFirst: index == 0, to: &pending)
            switch part.content {
            case .value(let text):
                pending += "\"\r\n\r\n".utf8
                pending += text.utf8
            case .data(let bytes, let name, let type):
                Self.append(fileName: name, type, to: &pending)
                pending += bytes
            case .file(let path, let name, let type):
                Self.append(fileName: name, type, to: &pending)
                segments.append(.bytes(pending))
                pending = []
                segments.append(.file(try OpenedFile(path: path)))
            }
        }
        if isWhole, !parts.isEmpty { pending += closing }
        segments.append(.bytes(pending))
        return try MultipartBody(segments)
    }

    /// The bytes after the last part.
    package var closing: [UInt8] { Array("\r\n--\(boundary)--\r\n".utf8) }

    /// The bytes before the content of a part that is sent from elsewhere.
    package func opening(of name: String, fileName: String, _ type: MediaType?, isFirst: Bool) -> [UInt8] {
        var opening: [UInt8] = []
        append(openingOf: Array(name.utf8), isFirst: isFirst, to: &opening)
        Self.append(fileName: fileName, type, to: &opening)
        return opening
    }

    private func append(openingOf name: [UInt8], isFirst: Bool, to out: inout [UInt8]) {
        out += "\(isFirst ? "" : "\r\n")--\(boundary)\r\nContent-Disposition: form-data; name=\"".utf8
        Self.append(escaped: name, to: &out)
    }

    /// Appends the bytes between a part's name and its content.
    private static func append(fileName: String?, _ type: MediaType?, to out: inout [UInt8]) {
        if let fileName {
            out += "\"; filename=\"".utf8
            append(escaped: Array(fileName.utf8), to: &out)
        }
        out += "\"\r\n".utf8
        if let type = type?.description ?? fileName.map(FileExtension.mediaType) {
            out += "Content-Type: \(type)\r\n".utf8
        }
        out += "\r\n".utf8
    }

    private static func append(escaped name: [UInt8], to out: inout [UInt8]) {
        for byte in name {
            if byte.isControl || byte == UInt8(ascii: "\"") {
                out += (byte < 0x10 ? "%0" : "%").utf8
                out += String(byte, radix: 16, uppercase: true).utf8
            } else {
                out.append(byte)
            }
        }
    }
}
