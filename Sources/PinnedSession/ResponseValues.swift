import FoundationEssentials
import PinproxySerialization

/// Values of a whole response.
extension HTTPResponse {
    /// - Parameter limit: of the body without content codings.
    func value<Serializer: ResponseSerializer>(
        of body: [UInt8], by serializer: Serializer, limit: Int
    ) throws(SessionError) -> Serializer.Value? {
        let (head, plain) = try accepted(body, by: serializer, limit)
        do throws(ResponseSerializationError) {
            return try serializer.value(of: plain, head: head)
        } catch {
            throw .unacceptable(error)
        }
    }

    func value<Value: Decodable>(
        of body: [UInt8], as type: Value.Type, decoder: JSONDecoder, limit: Int
    ) throws(SessionError) -> Value {
        let (_, plain) = try accepted(body, by: JSONResponseSerializer(), limit)
        do {
            return try decoder.decode(type, from: Data(plain))
        } catch {
            throw .undecodable("the response's JSON is not a \(type): \(CodingProblem(error))")
        }
    }

    /// Judges the head, and undoes codings that the session didn't.
    private func accepted(
        _ body: [UInt8], by serializer: some ResponseSerializer, _ limit: Int
    ) throws(SessionError) -> (head: PinproxySerialization.ResponseHead, body: [UInt8]) {
        let head = PinproxySerialization.ResponseHead(
            status: status, contentType: self["Content-Type"].map { ContentType($0) },
            contentEncoding: self["Content-Encoding"], body: body.isEmpty ? .none : .length(body.count))
        do throws(ResponseSerializationError) {
            try serializer.validate(head, bodyIsEmpty: body.isEmpty)
        } catch {
            throw .unacceptable(error)
        }
        if isDecoded { return (head, body) }
        do throws(ContentDecodingError) {
            let codings = try ContentCoding.list(head.contentEncoding)
            let limits = ContentDecoder.Limits(length: limit)
            return (head, try ContentDecoder.decode(body, codings: codings, limits: limits))
        } catch {
            throw SessionError(error, limit: limit)
        }
    }
}
