import PinproxyDaemon
import PinproxyDecoding
import PinproxyHTTPWire
import PinproxyIsolation
import PinproxySerialization

/// Messages between programs of one machine: decoder processes, the control socket, names of an isolated network.
enum Frames {
    private static let longest = (message: 512, body: 2048)

    /// Messages of a decoder process, which may be compromised, to the proxy.
    static func decoder(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        let seed = choices.byte()
        let input = choices.input
        var whole = FrameReader(longestMessage: longest.message, longestBody: longest.body)
        let frame = try? input.withUnsafeBytes { bytes throws(Frame.Defect) in try whole.take(bytes) }
        var cut = FrameReader(longestMessage: longest.message, longestBody: longest.body)
        var (arrived, last, isBroken) = (0, (message: [UInt8], body: [UInt8])?.none, false)
        var cuts = Cuts(seed: seed)
        while arrived < input.count, !isBroken {
            let end = min(arrived + cuts.next(), input.count)
            do {
                last = try input[arrived..<end].withUnsafeBytes { bytes throws(Frame.Defect) in try cut.take(bytes) }
            } catch {
                isBroken = true
            }
            arrived = end
        }
        if let frame = frame ?? nil {
            require(
                !isBroken && last?.message == frame.message && last?.body == frame.body,
                "a frame is the same, however it is cut")
            require(
                frame.message.count <= longest.message && frame.body.count <= longest.body,
                "a frame stays in its limits")
            answers(frame.message, frame.body)
        }
        // Without a frame header, so that the fuzzer needn't guess lengths.
        answers(input, [1, 2, 3])
        if let (answer, result) = try? AskedBodyWork.perform(input, on: Array("{\"a\":null}".utf8)) {
            require(!answer.isEmpty && result.count <= 1 << 20, "work that is understood is answered")
        }
    }

    private static let judgement: BodyJudgement? = {
        var rules = ResponseRules()
        rules.serializers = [.json]
        rules.removeNullValues = true
        let head = ResponseHead(status: 200, contentType: ContentType("application/json"), body: .unknownLength)
        guard case .hold(let judgement, _)? = ResponseJudge(rules)?.verdict(on: head, inspectedBody: 1024) else {
            return nil
        }
        return judgement
    }()
    private static let conversion = BodyConversionWork(
        BodyConversion(from: .form, to: .json), contentType: "application/x-www-form-urlencoded", limit: 1024)

    private static func answers(_ message: [UInt8], _ body: [UInt8]) {
        guard let judgement else { return require(false, "JSON is judged by its body") }
        switch try? judgement.outcome(told: message, body) {
        case .rewrite(let body)?: require(body.count <= judgement.longestBody, "a decoder's body stays in its limit")
        case .refuse(let error)?: require("\(error)".utf8.count < 1 << 20, "a decoder's words are bounded")
        case .pass?, nil: break
        }
        switch try? conversion.outcome(told: message, body) {
        case .success(let body)?: require(body.count <= conversion.longestBody, "a decoder's body stays in its limit")
        case .failure(let error)?: require("\(error)".utf8.count < 1 << 20, "a decoder's words are bounded")
        case nil: break
        }
    }

    /// Bodies of requests to convert.
    static func conversion(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 2)
        let conversion = BodyConversion(
            from: choices.one(of: BodyConversion.Form.allCases), to: choices.one(of: BodyConversion.Form.allCases))
        let limit = 1 << 14
        guard let body = try? conversion.convert(choices.input, contentType: conversion.from.contentType, limit: limit)
        else { return }
        require(
            choices.input.isEmpty == body.isEmpty || conversion.from == .form || conversion.to == .form,
            "an empty body stays empty")
        require(body.count <= limit, "a converted body stays in its limit")
        switch conversion.to {
        case .json: require((try? JSONResponseSerializer().check(body: body)) != nil, "what is written as JSON is JSON")
        case .propertyList:
            require(
                (try? PropertyListResponseSerializer().check(body: body)) != nil, "what is written as a list is one")
        case .form: require(body.allSatisfy { 0x21...0x7E ~= $0 }, "a form is text")
        }
    }

    /// A request to the control socket or the admin port.
    static func control(_ bytes: [UInt8]) {
        var parser = HeadParser(limit: 4096)
        var head = RequestHead()
        guard case .complete = parser.parseRequest(bytes.span, into: &head) else { return }
        let request = ControlRequest(RequestView(head, bytes.span), through: .port(client: "192.0.2.1"))
        require((request != nil) == (head.targetForm == .origin), "a control request has a path")
        if let request {
            require(!request.path.contains { $0.isEmpty || $0.contains("/") }, "segments of a path are told apart")
        }
    }

    /// A query for addresses, from within an isolated network.
    static func name(_ bytes: [UInt8]) {
        switch NameMessage.parse(bytes) {
        case .nothing: break
        case .answer(let answer): check(answer, of: bytes)
        case .question(let question):
            require(
                question.name.utf8.count < 255 && question.name.utf8.allSatisfy { 0x21...0x7E ~= $0 }, "a name is text")
            check(question.answer(.unknownName), of: bytes)
            let answer = question.answer([], longest: 512)
            check(answer, of: bytes)
            require(NameMessage.parse(answer) == .nothing, "an answer isn't answered")
        }
    }

    private static func check(_ answer: [UInt8], of question: [UInt8]) {
        require(
            answer.count >= 12 && answer.prefix(2) == question.prefix(2) && answer[2] & 0x80 != 0,
            "an answer is that of its question")
        require(answer.count <= question.count, "a refusal is no longer than its question")
    }
}
