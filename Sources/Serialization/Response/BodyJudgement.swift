/// Judges the body of one response. Its time is in proportion to the body (images: to their pixels).
package struct BodyJudgement: Sendable {
    let serializers: [ResponseRules.Serializer]
    let codings: [ContentCoding]
    let rules: ResponseRules
    let inspectedBody: Int

    package var rewrites: Bool { rules.removeNullValues && serializers.first == .json }

    /// - Parameter body: as transferred, whole.
    package func verdict(on body: [UInt8]) -> BodyVerdict {
        if let most = rules.maxBody, body.count > most {
            return .refuse(ResponseSerializationError(.tooLong(limit: most), expected: "at most \(most) bytes"))
        }
        guard body.count <= inspectedBody else { return tooLongToJudge }
        let decoded: [UInt8]
        do throws(ContentDecodingError) {
            decoded = try ContentDecoder.decode(body, codings: codings, limits: .init(length: inspectedBody))
        } catch {
            if case .tooLong = error { return tooLongToJudge }
            return .refuse(ResponseSerializationError(.undecodable(error), expected: "content coding \(codingNames)"))
        }
        guard !decoded.isEmpty else { return .pass }
        var errors: [ResponseSerializationError] = []
        for serializer in serializers {
            do throws(BodyDefect) {
                return try accept(decoded, serializer)
            } catch {
                errors.append(ResponseSerializationError(.malformedBody(error), expected: serializer.format))
            }
        }
        return .refuse(ResponseSerializationError(none: errors))
    }

    /// By a body that turns out too long to be held back, or to be decoded.
    package var tooLongToJudge: BodyVerdict {
        switch rules.oversize {
        case .pass: .pass
        case .refuse:
            .refuse(
                ResponseSerializationError(
                    .tooLongToJudge(limit: inspectedBody), expected: "at most \(inspectedBody) bytes"))
        }
    }

    private var codingNames: String { codings.map(\.rawValue).joined(separator: ", ") }

    private func accept(_ body: [UInt8], _ serializer: ResponseRules.Serializer) throws(BodyDefect) -> BodyVerdict {
        if serializer == .json, rules.removeNullValues {
            return try JSONResponseSerializer().removingNullValues(from: body).map { .rewrite($0) } ?? .pass
        }
        try serializer.responseSerializer.check(body: body)
        return .pass
    }
}

package enum BodyVerdict: Sendable {
    case pass
    /// The body is replaced, without content coding. Length, validators and digests of the old one don't apply.
    case rewrite([UInt8])
    case refuse(ResponseSerializationError)
}

extension ResponseRules.Serializer {
    var responseSerializer: any ResponseSerializer {
        switch self {
        case .http: HTTPResponseSerializer()
        case .json: JSONResponseSerializer()
        case .xml: XMLResponseSerializer()
        case .propertyList: PropertyListResponseSerializer()
        case .image: ImageResponseSerializer()
        }
    }

    var contentTypes: [MediaRange]? { responseSerializer.acceptableContentTypes }
    /// For people: `JSON`.
    package var format: String { responseSerializer.format }
}
