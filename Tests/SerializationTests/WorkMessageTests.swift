import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// Messages to the decoding process, and its answers.
@Suite struct WorkMessageTests {
    // MARK: The same as without a process

    private struct Asked<Work: BodyWork> {
        let work: Work
        let body: [UInt8]
    }

    private func judgement(
        _ serializers: [ResponseRules.Serializer], codings: [ContentCoding] = [], limit: Int = 1 << 20,
        _ change: (inout ResponseRules) -> Void = { _ in }
    ) -> BodyJudgement {
        var rules = ResponseRules()
        rules.serializers = serializers
        change(&rules)
        return BodyJudgement(serializers: serializers, codings: codings, rules: rules, inspectedBody: limit)
    }

    private var judgements: [Asked<BodyJudgement>] {
        let json = judgement([.json])
        let png = ImageSeeds.all.first { $0.name == "png" }?.bytes ?? []
        return [
            Asked(work: json, body: Array("[1]".utf8)), Asked(work: json, body: Array("[1,\n nul]".utf8)),
            Asked(work: judgement([.json]) { $0.removeNullValues = true }, body: Array("[1, null]".utf8)),
            Asked(work: judgement([.json]) { $0.maxBody = 2 }, body: Array("[1]".utf8)),
            Asked(work: judgement([.json], limit: 2), body: Array("[1]".utf8)),
            Asked(work: judgement([.json], limit: 2) { $0.oversize = .pass }, body: Array("[1]".utf8)),
            Asked(work: judgement([.json], codings: [.gzip]), body: Array("[1]".utf8)),
            Asked(work: judgement([.json], codings: [.gzip, .brotli, .zstd, .deflate]), body: Array("x".utf8)),
            Asked(work: judgement([.json], codings: [.gzip]), body: [0x1F, 0x8B, 8, 0]),
            Asked(work: judgement([.xml]), body: Array("<a>\n<b></a>".utf8)),
            Asked(work: judgement([.propertyList]), body: Array("bplist00".utf8)),
            Asked(work: judgement([.image]), body: png),
            Asked(work: judgement([.image]), body: Array(png.dropLast(20))),
            Asked(work: judgement([.json, .xml, .propertyList, .image]), body: Array("hello\u{1B}[31m".utf8)),
        ]
    }

    @Test func aJudgementIsTheSameByMessages() throws {
        for asked in judgements {
            let (answer, result) = try AskedBodyWork.perform(asked.work.message, on: asked.body)
            let told = try asked.work.outcome(told: answer, result)
            #expect("\(told)" == "\(asked.work.outcome(on: asked.body))")
        }
    }

    @Test(arguments: [
        ("a=1&b[]=2", BodyConversion.Form.form, BodyConversion.Form.json), ("a=%zz", .form, .json),
        ("{\"a\":[1]}", .json, .propertyList), ("{\"a\":null}", .json, .propertyList), ("[1", .json, .form),
        ("[1]", .json, .form),
        ("<plist><dict><key>a</key><date>2011-05-03T12:30:15Z</date></dict></plist>", .propertyList, .json),
    ])
    func aConversionIsTheSameByMessages(text: String, from: BodyConversion.Form, to: BodyConversion.Form) throws {
        for limit in [1 << 20, 3] {
            let work = BodyConversionWork(
                BodyConversion(from: from, to: to), contentType: "a/b; charset=utf-8", limit: limit)
            let (answer, result) = try AskedBodyWork.perform(work.message, on: Array(text.utf8))
            let told = try work.outcome(told: answer, result)
            #expect(told == work.outcome(on: Array(text.utf8)))
        }
    }

    private static let place = TextPlace(line: 3, column: 7)
    private static let codingErrors: [ContentDecodingError] = [
        .unknownCoding("x"), .tooManyCodings(limit: 4), .malformed(coding: "br", offset: 5, explanation: "damaged"),
        .truncated(coding: "gzip"), .trailingBytes(coding: "gzip", offset: 9), .secondMember(offset: 8),
        .tooLong(limit: 7),
        .tooDense(coding: "zstd", limit: 200),
    ]

    private static var responseErrors: [ResponseSerializationError] {
        let plain: [ResponseSerializationError] =
            [
                ResponseSerializationError(.unacceptableStatus(500), expected: "200"),
                ResponseSerializationError(
                    .unacceptableContentType(ContentType("text/html")), expected: "application/json"),
                ResponseSerializationError(.unacceptableContentType(nil), expected: "application/json"),
                ResponseSerializationError(.malformedBody(BodyDefect("wrong", at: place)), expected: "JSON"),
                ResponseSerializationError(.malformedBody(BodyDefect("wrong")), expected: "JSON"),
                ResponseSerializationError(.tooLong(limit: 10), expected: "at most 10 bytes"),
                ResponseSerializationError(.tooLongToJudge(limit: 10), expected: "at most 10 bytes"),
            ] + codingErrors.map { ResponseSerializationError(.undecodable($0), expected: "gzip") }
        return plain + [ResponseSerializationError(none: Array(plain[3...5]))]
    }

    private static let requestErrors = [
        RequestSerializationError(.inexpressible(InexpressibleValue(name: "a[b]", format: "JSON", kind: "a date"))),
        RequestSerializationError(.malformedBody(format: "JSON", BodyDefect("wrong", at: place))),
        RequestSerializationError(.tooLong(limit: 9)),
        RequestSerializationError(.unusableFile(path: "/a", explanation: "gone")),
        RequestSerializationError(.changedFile(path: "/a", explanation: "shorter")),
    ]

    /// Every possible answer.
    private static var answers: [[UInt8]] {
        responseErrors.map { error in
            var message = MessageWriter()
            _ = BodyJudgement.write(.refuse(error), to: &message)
            return message.bytes
        }
    }

    @Test func everyErrorIsTold() throws {
        for (error, answer) in zip(Self.responseErrors, Self.answers) {
            let verdict = try judgement([.json]).outcome(told: answer, [])
            let told = if case .refuse(let told) = verdict { told } else { ResponseSerializationError?.none }
            #expect(told == error)
        }
        let conversion = BodyConversionWork(BodyConversion(from: .form, to: .json), contentType: "", limit: 10)
        for error in Self.requestErrors {
            var message = MessageWriter()
            _ = BodyConversionWork.write(.failure(error), to: &message)
            #expect(try conversion.outcome(told: message.bytes, []) == .failure(error))
        }
    }

    // MARK: Anything else

    @Test func everyPrefixIsMalformed() {
        for message in judgements.map(\.work.message) {
            for length in 0..<message.count {
                #expect(throws: MalformedMessage.self) { try AskedBodyWork.perform(Array(message[..<length]), on: []) }
            }
            #expect(throws: MalformedMessage.self) { try AskedBodyWork.perform(message + [0], on: []) }
        }
        for answer in Self.answers {
            for length in 0..<answer.count {
                #expect(throws: MalformedMessage.self) {
                    try judgement([.json]).outcome(told: Array(answer[..<length]), [])
                }
            }
            #expect(throws: MalformedMessage.self) { try judgement([.json]).outcome(told: answer + [0], []) }
        }
    }

    /// A compromised process may send anything. The answers differ each time: the fuzzer's target is `decoder-frame`.
    @Test func noAnswerIsBelieved() throws {
        var random = SeededGenerator(seed: 5)
        var understood = 0
        for round in 0..<4_000 {
            let answer = Self.answers[round % Self.answers.count].mutated(by: &random)
            guard let verdict = try? judgement([.json]).outcome(told: answer, []), case .refuse(let error) = verdict
            else {
                continue
            }
            understood += 1
            for text in [error.description, error.expected, error.received] + error.underlying.map(\.description) {
                #expect(
                    text.utf8.count < 10_000
                        && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
            }
        }
        #expect(understood > 200)
    }

    /// An answer with an unrequested body, or with one too long, is refused.
    @Test func aBodyThatWasNotAskedForIsNoAnswer() throws {
        var answer = MessageWriter()
        let body = BodyJudgement.write(.rewrite(Array("[1]".utf8)), to: &answer)
        #expect(throws: MalformedMessage.self) { try judgement([.json]).outcome(told: answer.bytes, body) }
        let rewriting = judgement([.json], limit: 2) { $0.removeNullValues = true }
        #expect(throws: MalformedMessage.self) { try rewriting.outcome(told: answer.bytes, body) }
        let right = judgement([.json], limit: 3) { $0.removeNullValues = true }
        #expect("\(try right.outcome(told: answer.bytes, body))" == "\(BodyVerdict.rewrite(body))")
    }

    @Test func lengthsAreBounded() {
        func message(_ fill: (inout MessageWriter) -> Void) -> MessageReader {
            var writer = MessageWriter()
            fill(&writer)
            return MessageReader(writer.bytes)
        }
        for length in [Int.max, Int.min, -1, 1 << 40, 1] {
            var reader = message { $0.write(length) }
            #expect(throws: MalformedMessage.self) { try reader.text() }
            var list = message { $0.write(length) }
            #expect(throws: MalformedMessage.self) {
                try list.list(most: 4) { message throws(MalformedMessage) in try message.byte() }
            }
        }
        // Errors within errors within errors.
        var nested = ResponseSerializationError(.tooLong(limit: 1), expected: "")
        for _ in 0..<5 { nested = ResponseSerializationError(.tooLong(limit: 1), expected: "", underlying: [nested]) }
        var writer = MessageWriter()
        _ = BodyJudgement.write(.refuse(nested), to: &writer)
        #expect(throws: MalformedMessage.self) { try judgement([.json]).outcome(told: writer.bytes, []) }
    }
}
