import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession

/// Values of fields that servers send, and that affect decisions.
enum FieldValues {
    static func challenge(_ bytes: [UInt8]) {
        // As in a head: lines without control characters.
        let value = bytes.map { $0 >= 0x20 && $0 != 0x7F || $0 == 9 ? $0 : 0x20 }
        var challenges: [Challenge] = []
        Challenge.append(of: value.span, to: &challenges)
        require(challenges.count <= Challenge.most, "no more challenges are read than \(Challenge.most)")
        for challenge in challenges {
            require(
                challenge.scheme == challenge.scheme.lowercased() && !challenge.scheme.isEmpty,
                "a scheme is in lower case")
            require(challenge.parameters.count <= AuthParameters.most, "parameters are bounded")
            require(challenge.token68 == nil || challenge.parameters.count == 0, "an opaque text stands alone")
            answer(challenge)
        }
        var again = challenges
        Challenge.append(of: value.span, to: &again)
        require(again.count <= Challenge.most && again.starts(with: challenges), "challenges are appended")
        _ = AuthParameters.parse(value.span)
    }

    private static let credentials = try? Credentials(user: "us\"er\\ ü", password: Secret("pass word"))

    private static func answer(_ challenge: Challenge) {
        guard let digest = DigestChallenge(challenge), let credentials else { return }
        let nonce = Array("0a4f113b".utf8)
        let session = DigestChallenge.Session(nonce: digest.nonce, clientNonce: nonce)
        let written = digest.authorization(
            credentials, method: Array("GET".utf8), target: Array("/a?b".utf8), count: 1, clientNonce: nonce,
            session: session)
        guard let written else { return require(false, "a challenge with a digest that exists is answered") }
        require(written.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }, "an answer is a field's value")
        var answers: [Challenge] = []
        Challenge.append(of: written.span, to: &answers)
        guard answers.count == 1, let answer = answers.first else {
            return require(false, "an answer reads as one: \(String(decoding: written, as: UTF8.self))")
        }
        require(answer.scheme == "digest" && answer.parameters["nonce"] == digest.nonce, "an answer repeats the nonce")
        require(
            answer.parameters["realm"] == digest.realm && answer.parameters["opaque"] == digest.opaque,
            "an answer repeats what it was asked with")
        require(answer.parameters["uri"] == Array("/a?b".utf8), "an answer is for its target")
    }

    static func contentRange(_ bytes: [UInt8]) {
        guard let range = ContentRange.parse(bytes.span) else { return }
        let text: String
        switch range {
        case .bytes(let part, let complete):
            require(
                part.upperBound < complete ?? .max && part.upperBound <= UInt64(Int64.max), "a part is within the whole"
            )
            text = "bytes \(part.lowerBound)-\(part.upperBound)/\(complete.map(String.init) ?? "*")"
        case .unsatisfied(let complete): text = "bytes */\(complete)"
        }
        require(ContentRange.parse(Array(text.utf8).span) == range, "a range reads as itself: \(text)")
    }

    /// Dates, entity tags, delays, requested ranges, content types and lists of codings.
    static func others(_ bytes: [UInt8]) {
        if let date = HTTPDate.parse(bytes.span) {
            require(abs(date) < 1 << 40, "a date has a year of four digits")
            require(RetryAfter.seconds(bytes.span, at: date) == 0, "a date that is reached is no time to wait")
        }
        for time: Int64 in [0, 1 << 33] { _ = RetryAfter.seconds(bytes.span, at: time) }
        if let tag = EntityTag.parse(bytes.span) {
            require(
                tag.opaque.count >= 2 && EntityTag.parse(tag.opaque.span)?.opaque == tag.opaque, "a tag reads as itself"
            )
        }
        _ = StrongValidator.of(etag: bytes, lastModified: nil, date: nil)
        let text = String(decoding: bytes, as: UTF8.self)
        switch WantedPart(text) {
        case .bytes(let first, let last?): require(first <= last, "a part that is asked for has an order")
        default: break
        }
        let type = ContentType(text)
        require(type.description.utf8.count <= 1000, "what is shown of a type is bounded")
        if let essence = type.essence {
            require(
                essence == essence.lowercased() && ContentType(essence).essence == essence,
                "a type reads as itself: \(essence)")
        }
        if let codings = try? ContentCoding.list(text) {
            require(codings.count <= ContentCoding.most, "codings are bounded")
        }
    }
}
