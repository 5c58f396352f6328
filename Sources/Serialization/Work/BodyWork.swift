/// Work on a whole body that is done away from the connection it came by: on another thread, or in another process.
package protocol BodyWork: Sendable {
    associatedtype Outcome: Sendable

    /// The kind of work, in a message.
    static var kind: UInt8 { get }

    /// It runs untrusted decoders, or takes memory out of proportion to the body. Other work is linear and small.
    var needsDecoder: Bool { get }
    /// Bytes of a body that it may have to hold: decoded, or coming out of it.
    var longestBody: Int { get }

    func outcome(on body: [UInt8]) -> Outcome

    func write(to message: inout MessageWriter)
    init(from message: inout MessageReader) throws(MalformedMessage)

    /// - Returns: the body that came out; it travels beside the message.
    static func write(_ outcome: Outcome, to message: inout MessageWriter) -> [UInt8]
    /// The text of another process is cleaned and limited like a peer's.
    func readOutcome(from message: inout MessageReader, _ result: [UInt8]) throws(MalformedMessage) -> Outcome
}

extension BodyWork {
    package var message: [UInt8] {
        var message = MessageWriter()
        message.write(Self.kind)
        write(to: &message)
        return message.bytes
    }

    package func outcome(told answer: [UInt8], _ result: [UInt8]) throws(MalformedMessage) -> Outcome {
        guard result.count <= longestBody else { throw MalformedMessage() }
        var message = MessageReader(answer)
        let outcome = try readOutcome(from: &message, result)
        try message.finish()
        return outcome
    }
}

package enum AskedBodyWork {
    /// - Returns: the answer, and the body that came out.
    package static func perform(_ message: [UInt8], on body: [UInt8]) throws(MalformedMessage) -> ([UInt8], [UInt8]) {
        var message = MessageReader(message)
        switch try message.byte() {
        case BodyJudgement.kind: return try perform(BodyJudgement.self, &message, body)
        case BodyConversionWork.kind: return try perform(BodyConversionWork.self, &message, body)
        default: throw MalformedMessage()
        }
    }

    private static func perform<Work: BodyWork>(
        _: Work.Type, _ message: inout MessageReader, _ body: [UInt8]
    ) throws(MalformedMessage) -> ([UInt8], [UInt8]) {
        let work = try Work(from: &message)
        try message.finish()
        var answer = MessageWriter()
        let result = Work.write(work.outcome(on: body), to: &answer)
        return (answer.bytes, result)
    }
}
