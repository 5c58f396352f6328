// What is wrong with a body, in messages. Limits and places are numbers that another process says: they are only shown.

extension MessageWriter {
    mutating func write(_ error: ResponseSerializationError) {
        switch error.reason {
        case .unacceptableStatus(let status): writeCase(0, number: status)
        case .unacceptableContentType(let type):
            write(1 as UInt8)
            write(type != nil)
            if let type { write(type.description) }
        case .malformedBody(let defect):
            write(2 as UInt8)
            write(defect)
        case .undecodable(let error):
            write(3 as UInt8)
            write(error)
        case .tooLong(let limit): writeCase(4, number: limit)
        case .tooLongToJudge(let limit): writeCase(5, number: limit)
        }
        write(error.expected)
        write(error.underlying) { $1.write($0) }
    }

    mutating func write(_ error: RequestSerializationError) {
        switch error.reason {
        case .inexpressible(let value):
            writeCase(0, value.name, value.format, value.kind)
        case .malformedBody(let format, let defect):
            writeCase(1, format)
            write(defect)
        case .tooLong(let limit): writeCase(2, number: limit)
        case .unusableFile(let path, let explanation), .changedFile(let path, let explanation):
            writeCase(error.code == .badURL ? 3 : 4, path, explanation)
        }
    }

    private mutating func writeCase(_ kind: UInt8, _ texts: String..., number: Int? = nil) {
        write(kind)
        for text in texts { write(text) }
        if let number { write(number) }
    }

    private mutating func write(_ defect: BodyDefect) {
        write(defect.explanation)
        write(defect.place?.line)
        write(defect.place?.column)
    }

    private mutating func write(_ error: ContentDecodingError) {
        switch error {
        case .unknownCoding(let name): writeCase(0, name)
        case .tooManyCodings(let limit): writeCase(1, number: limit)
        case .malformed(let coding, let offset, let explanation):
            writeCase(2, coding, number: offset)
            write(explanation)
        case .truncated(let coding): writeCase(3, coding)
        case .trailingBytes(let coding, let offset): writeCase(4, coding, number: offset)
        case .secondMember(let offset): writeCase(5, number: offset)
        case .tooLong(let limit): writeCase(6, number: limit)
        case .tooDense(let coding, let limit): writeCase(7, coding, number: limit)
        }
    }
}

extension MessageReader {
    /// - Parameter depth: of errors that others contain; a serializer's own contains one at most.
    mutating func responseError(depth: Int = 2) throws(MalformedMessage) -> ResponseSerializationError {
        let reason: ResponseSerializationError.Reason =
            switch try byte() {
            case 0: .unacceptableStatus(try number())
            case 1: .unacceptableContentType(try flag() ? ContentType(try shownText()) : nil)
            case 2: .malformedBody(try defect())
            case 3: .undecodable(try decodingError())
            case 4: .tooLong(limit: try number())
            case 5: .tooLongToJudge(limit: try number())
            default: throw MalformedMessage()
            }
        let expected = try shownText()
        let most = depth > 0 ? ResponseRules.Serializer.allCases.count : 0
        let underlying = try list(most: most) { message throws(MalformedMessage) in
            try message.responseError(depth: depth - 1)
        }
        return ResponseSerializationError(reason, expected: expected, underlying: underlying)
    }

    mutating func requestError() throws(MalformedMessage) -> RequestSerializationError {
        switch try byte() {
        case 0:
            let value = InexpressibleValue(name: try shownText(), format: try shownText(), kind: try shownText())
            return RequestSerializationError(.inexpressible(value))
        case 1: return RequestSerializationError(.malformedBody(format: try shownText(), try defect()))
        case 2: return RequestSerializationError(.tooLong(limit: try number()))
        case 3: return RequestSerializationError(.unusableFile(path: try shownText(), explanation: try shownText()))
        case 4: return RequestSerializationError(.changedFile(path: try shownText(), explanation: try shownText()))
        default: throw MalformedMessage()
        }
    }

    private mutating func defect() throws(MalformedMessage) -> BodyDefect {
        let explanation = try shownText()
        let (line, column) = (try optionalNumber(), try optionalNumber())
        return BodyDefect(explanation, at: line.map { TextPlace(line: $0, column: column) })
    }

    private mutating func decodingError() throws(MalformedMessage) -> ContentDecodingError {
        switch try byte() {
        case 0: .unknownCoding(try shownText())
        case 1: .tooManyCodings(limit: try number())
        case 2: .malformed(coding: try shownText(), offset: try number(), explanation: try shownText())
        case 3: .truncated(coding: try shownText())
        case 4: .trailingBytes(coding: try shownText(), offset: try number())
        case 5: .secondMember(offset: try number())
        case 6: .tooLong(limit: try number())
        case 7: .tooDense(coding: try shownText(), limit: try number())
        default: throw MalformedMessage()
        }
    }
}
