extension BodyJudgement: BodyWork {
    package static var kind: UInt8 { 1 }

    /// False if ``JSONScanner`` alone reads the body in its transferred form: it keeps none of it.
    package var needsDecoder: Bool { !codings.isEmpty || serializers != [.json] }

    package var longestBody: Int { inspectedBody }

    package func outcome(on body: [UInt8]) -> BodyVerdict { verdict(on: body) }

    package func write(to message: inout MessageWriter) {
        message.write(serializers) { $1.write($0.rawValue) }
        message.write(codings) { $1.write($0.rawValue) }
        message.write(rules.removeNullValues)
        message.write(rules.maxBody)
        message.write(rules.oversize.rawValue)
        message.write(inspectedBody)
    }

    package init(from message: inout MessageReader) throws(MalformedMessage) {
        serializers = try message.list(most: ResponseRules.Serializer.allCases.count) {
            message throws(MalformedMessage) in
            try message.value()
        }
        codings = try message.list(most: ContentCoding.most) { message throws(MalformedMessage) in try message.value() }
        var rules = ResponseRules()
        rules.removeNullValues = try message.flag()
        rules.maxBody = try message.optionalNumber()
        rules.oversize = try message.value()
        self.rules = rules
        inspectedBody = try message.amount()
    }

    package static func write(_ verdict: BodyVerdict, to message: inout MessageWriter) -> [UInt8] {
        switch verdict {
        case .pass: message.write(0 as UInt8)
        case .rewrite(let body):
            message.write(1 as UInt8)
            return body
        case .refuse(let error):
            message.write(2 as UInt8)
            message.write(error)
        }
        return []
    }

    package func readOutcome(
        from message: inout MessageReader, _ result: [UInt8]
    ) throws(MalformedMessage) -> BodyVerdict {
        switch try message.byte() {
        case 0: return .pass
        case 1 where rewrites: return .rewrite(result)
        case 2: return .refuse(try message.responseError())
        default: throw MalformedMessage()
        }
    }
}

extension MessageReader {
    /// One of a few names.
    mutating func value<Value: RawRepresentable<String>>() throws(MalformedMessage) -> Value {
        guard let value = Value(rawValue: try text()) else { throw MalformedMessage() }
        return value
    }
}
