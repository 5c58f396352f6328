import PinproxyEventLoop
import PinproxySession

struct DecoderJob: Sendable {
    let number: UInt64
    /// The request (``Frame``).
    let message: [UInt8]
    let body: [UInt8]
    let longestBody: Int
    /// The queue is fair among hosts.
    let host: String
    let arrived: MonotonicTime
    /// Takes the answer. False: it makes no sense, and the job still needs one. Call this or ``fail``, once.
    let accept: @Sendable (_ message: [UInt8], _ body: [UInt8]) -> Bool
    /// Reports that the job isn't done. Call this or ``accept``, once.
    let fail: @Sendable (BodyWorkFailure) -> Void
}
