internal import PinproxyHTTPWire
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxyTLS

/// A response in a file, as `curl -i` writes it: one or more heads, then the body.
///
/// Several heads follow `100 Continue`, CONNECT, a redirect (`-L`) and a challenge (`--digest`); the last one counts.
/// curl has undone chunks, so Transfer-Encoding says nothing. Version and reason don't matter (`HTTP/2 200`).
struct StoredResponse {
    let file: String
    let status: Int
    /// Names in lower case.
    private let fields: [(name: String, value: [UInt8])]
    let body: [UInt8]

    /// The most bytes to read: more than any sensible `limits.inspected_body`.
    private static let limit = 1 << 30
    private static let advice = "store one with curl -i, e.g. curl -si URL > FILE"

    init(file: String) throws(CommandFailure) {
        let bytes: [UInt8]
        do throws(FileProblem) {
            bytes = try SmallFile.read(file, limit: Self.limit).bytes
        } catch {
            throw CommandFailure("\(file): the response can't be read: \(error)")
        }
        try self.init(bytes, file: file)
    }

    init(_ bytes: [UInt8], file: String) throws(CommandFailure) {
        guard !bytes.isEmpty else { throw CommandFailure("\(file): the file is empty; \(Self.advice)") }
        var reader = Reader(bytes)
        do throws(Defect) {
            var head = try reader.head()
            while head.precedesAnother {
                var ahead = reader
                guard let next = try? ahead.head() else { break }
                (head, reader) = (next, ahead)
            }
            guard head.status >= 200 || head.status == 101 else {
                throw Defect(line: 1, explanation: "status \(head.status) is interim, and no final response follows it")
            }
            (status, fields) = (head.status, head.fields)
        } catch {
            throw CommandFailure("\(file): line \(error.line): \(error.explanation); \(Self.advice)")
        }
        body = Array(reader.rest)
        self.file = file
    }

    /// The head for response rules.
    func head(answering method: PinproxyHTTPWire.Method) -> PinproxySerialization.ResponseHead {
        // A repeated field counts as one list (RFC 9110 section 5.3).
        func list(_ name: String) -> [UInt8]? {
            let values = fields.filter { $0.name == name }.map(\.value)
            return values.isEmpty ? nil : Array(values.joined(separator: Array(", ".utf8)))
        }
        return PinproxySerialization.ResponseHead(
            status: status, contentType: list("content-type").map { ContentType($0.span) },
            contentEncoding: list("content-encoding").map { String(decoding: $0, as: UTF8.self) },
            body: mayHaveBody(answering: method)
                ? (isComplete ? declaredLength : body.count).map { .length($0) } ?? .unknownLength : .none)
    }

    private func mayHaveBody(answering method: PinproxyHTTPWire.Method) -> Bool {
        PinproxyHTTPWire.ResponseHead.mayHaveContent(status: status, answering: method)
    }

    /// Nil: not declared, or not applicable to the file's body.
    private var declaredLength: Int? {
        guard !fields.contains(where: { $0.name == "transfer-encoding" }) else { return nil }
        return fields.first { $0.name == "content-length" }.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) }
    }

    private var isComplete: Bool { declaredLength.map { $0 == body.count } ?? true }

    /// How the stored response visibly differs from the sent one; nil: not at all.
    func remark(answering method: PinproxyHTTPWire.Method) -> String? {
        let mayHaveBody = mayHaveBody(answering: method)
        if mayHaveBody, fields.contains(where: { $0.name == "trailer" }) {
            return "the response has trailers, which curl -i writes after the body: they are judged as part of it"
        }
        guard mayHaveBody, !isComplete, let declaredLength else { return nil }
        return "Content-Length is \(declaredLength), and the file has \(body.count) bytes of body, which are judged: "
            + "curl -I stores no body, and --compressed stores a decoded one"
    }
}

extension StoredResponse {
    private struct Head {
        let status: Int
        let fields: [(name: String, value: [UInt8])]

        /// Whether another head may follow it instead of a body.
        var precedesAnother: Bool {
            switch status {
            case 100..<200, 300..<400, 401, 407: true
            // The answer to CONNECT.
            case 200..<300:
                !fields.contains { ["content-type", "content-length", "transfer-encoding"].contains($0.name) }
            default: false
            }
        }
    }

    private struct Defect: Error {
        let line: Int
        let explanation: String
    }

    private struct Reader {
        private let bytes: [UInt8]
        private var at = 0
        private var line = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var rest: ArraySlice<UInt8> { bytes[at...] }

        /// Up to the empty line.
        mutating func head() throws(Defect) -> Head {
            let first = try nextLine()
            guard let status = Self.status(first) else {
                throw Defect(
                    line: line, explanation: "\(Self.shown(first)) is not a status line, as HTTP/1.1 200 OK is")
            }
            var fields: [(name: String, value: [UInt8])] = []
            while true {
                let text = try nextLine()
                if text.isEmpty { return Head(status: status, fields: fields) }
                if let blank = text.first, blank == 0x20 || blank == 0x09, !fields.isEmpty {
                    // A folded line (RFC 9112 section 5.2).
                    fields[fields.count - 1].value += [0x20] + Self.trimmed(text)
                    continue
                }
                guard let colon = text.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex else {
                    throw Defect(
                        line: line,
                        explanation: "\(Self.shown(text)) is not a header field; an empty line ends the head")
                }
                let name = String(decoding: text[..<colon], as: UTF8.self).lowercased()
                fields.append((name, Self.trimmed(text[(colon + 1)...])))
            }
        }

        private mutating func nextLine() throws(Defect) -> ArraySlice<UInt8> {
            guard let end = bytes[at...].firstIndex(of: 0x0A) else {
                let explanation =
                    line == 0
                    ? "\(Self.shown(bytes[at...])) is not a status line, as HTTP/1.1 200 OK is"
                    : "the file ends within the head, before its empty line"
                throw Defect(line: line + 1, explanation: explanation)
            }
            defer { at = end + 1 }
            line += 1
            let text = bytes[at..<end]
            return text.last == 0x0D ? text.dropLast() : text
        }

        /// `HTTP/2 200`, `HTTP/1.1 200 OK`.
        private static func status(_ line: ArraySlice<UInt8>) -> Int? {
            let words = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count >= 2, words[0].starts(with: "HTTP/".utf8), words[0].count <= 8, words[1].count == 3,
                let status = Int(String(decoding: words[1], as: UTF8.self)), (100...599).contains(status)
            else { return nil }
            return status
        }

        private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
            let start = bytes.drop(while: isBlank)
            return Array(start.prefix(upTo: (start.lastIndex { !isBlank($0) } ?? start.startIndex - 1) + 1))
        }

        private static func shown(_ bytes: ArraySlice<UInt8>) -> String {
            "\"\(String(decoding: bytes.prefix(64), as: UTF8.self).printable(longest: 40))\""
        }
    }
}
