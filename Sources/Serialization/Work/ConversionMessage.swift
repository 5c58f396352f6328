// One idea with BodyWork.swift, which finds each kind of work by its number in a message.

package struct BodyConversionWork: BodyWork {
    private let conversion: BodyConversion
    private let contentType: String
    private let limit: Int

    /// - Parameter limit: the longest result.
    package init(_ conversion: BodyConversion, contentType: String, limit: Int) {
        self.conversion = conversion
        self.contentType = contentType
        self.limit = limit
    }

    package static var kind: UInt8 { 2 }

    /// A tree is made of the body, which takes up to a hundred times its memory.
    package var needsDecoder: Bool { true }
    package var longestBody: Int { limit }

    package func outcome(on body: [UInt8]) -> Result<[UInt8], RequestSerializationError> {
        Result { () throws(RequestSerializationError) in
            try conversion.convert(body, contentType: contentType, limit: limit)
        }
    }

    package func write(to message: inout MessageWriter) {
        message.write(conversion.from.rawValue)
        message.write(conversion.to.rawValue)
        message.write(contentType)
        message.write(limit)
    }

    package init(from message: inout MessageReader) throws(MalformedMessage) {
        conversion = BodyConversion(from: try message.value(), to: try message.value())
        contentType = try message.text()
        limit = try message.amount()
    }

    package static func write(
        _ outcome: Result<[UInt8], RequestSerializationError>, to message: inout MessageWriter
    ) -> [UInt8] {
        switch outcome {
        case .success(let body):
            message.write(true)
            return body
        case .failure(let error):
            message.write(false)
            message.write(error)
            return []
        }
    }

    package func readOutcome(
        from message: inout MessageReader, _ result: [UInt8]
    ) throws(MalformedMessage) -> Result<[UInt8], RequestSerializationError> {
        try message.flag() ? .success(result) : .failure(try message.requestError())
    }
}
