/// Judges responses by the rules of an exchange: the head, then, if a rule has to read it, the body. Stateless.
///
/// - Interim responses (1xx) are not judged. 101 is final: it needs an accepted status.
/// - Without a body by the message's framing (HEAD, 204, 205, 304) the status decides. 304 answers the client's own
///   condition, and is accepted unless `status` is written.
/// - A requested 206 is judged by its head. An unrequested one doesn't come here.
/// - `serializer: http` accepts every status unless `status` is written; the others accept 200–299 then.
package struct ResponseJudge: Sendable {
    package let statuses: [StatusRange]?
    private let serializers: [ResponseRules.Serializer]
    /// The content types of all serializers; nil if one of them accepts any.
    package let contentTypes: [MediaRange]?
    private let rules: ResponseRules

    /// Whether invalid responses are refused, and not only reported.
    package var isEnforced: Bool { rules.enforcement == .enforce }

    /// - Returns: nil if the rules ask for nothing.
    package init?(_ rules: ResponseRules) {
        let isHTTPAlone = rules.serializers == [.http]
        guard !isHTTPAlone || rules.status != nil || rules.contentTypes != nil || rules.maxBody != nil else {
            return nil
        }
        statuses = rules.status ?? (isHTTPAlone ? nil : [.success, StatusRange(304...304)])
        serializers = rules.serializers
        let ofEach = rules.serializers.compactMap(\.contentTypes)
        contentTypes = rules.contentTypes ?? (ofEach.count == serializers.count ? Array(ofEach.joined()) : nil)
        self.rules = rules
    }

    /// Judges a head, once for each response; `inspectedBody` limits held bytes, as transferred and as decoded.
    package func verdict(on head: ResponseHead, inspectedBody: Int) -> HeadVerdict {
        if (100..<200).contains(head.status), head.status != 101 { return .pass(limit: nil) }
        let criteria = HeadCriteria(statuses: statuses, contentTypes: contentTypes)
        let isEmpty = head.body == .none || head.body == .length(0)
        let error = criteria.error(in: head, bodyIsEmpty: isEmpty)
        if let error, case .unacceptableStatus = error.reason { return .refuse(error) }
        guard !isEmpty else { return .pass(limit: nil) }
        if case .length(let length) = head.body, let most = rules.maxBody, length > most {
            return .refuse(ResponseSerializationError(.tooLong(limit: most), expected: "at most \(most) bytes"))
        }
        if let error { return refusal(error, of: head) }
        let bodySerializers = bodySerializers(for: head)
        let rewrites = rules.removeNullValues && bodySerializers.first != .http
        guard head.status != 206, rewrites || !bodySerializers.contains(.http) else {
            return .pass(limit: rules.maxBody)
        }
        do {
            let codings = try ContentCoding.list(head.contentEncoding)
            let judgement = BodyJudgement(
                serializers: bodySerializers, codings: codings, rules: rules, inspectedBody: inspectedBody)
            return .hold(judgement, limit: rules.maxBody)
        } catch {
            return refusal(ResponseSerializationError(.undecodable(error), expected: Self.codings), of: head)
        }
    }

    private static let codings = ContentCoding.allCases.map(\.rawValue).joined(separator: ", ")

    /// Only a body can be of a wrong type, and whether there is one shows with its first byte.
    private func refusal(_ error: ResponseSerializationError, of head: ResponseHead) -> HeadVerdict {
        head.body == .unknownLength ? .refuseUnlessEmpty(error) : .refuse(error)
    }

    /// The serializers that accept the response's type, else (where `content_types` allows others) all.
    private func bodySerializers(for head: ResponseHead) -> [ResponseRules.Serializer] {
        let own = serializers.filter { serializer in
            guard let types = serializer.contentTypes else { return true }
            guard let essence = head.contentType?.essence else { return false }
            return types.contains { $0.includes(essence: essence) }
        }
        return own.isEmpty ? serializers : own
    }
}

package enum HeadVerdict: Sendable {
    /// It is forwarded, and its body cut after `limit` transferred bytes (nil: none).
    case pass(limit: Int?)
    /// It waits until its whole body, of at most `limit` transferred bytes, has been judged.
    case hold(BodyJudgement, limit: Int?)
    /// It waits for the body's first byte, which refuses it; an empty body is forwarded.
    case refuseUnlessEmpty(ResponseSerializationError)
    case refuse(ResponseSerializationError)
}
