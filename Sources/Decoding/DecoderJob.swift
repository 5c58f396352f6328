import EventLoop
import Session

/// One body for a process that decodes.
struct DecoderJob: Sendable {
    /// Tells it from others for its whole life.
    let number: UInt64
    /// What is asked (``Frame``).
    let message: [UInt8]
    let body: [UInt8]
    /// The longest body that may be made of it, and that may come out of it.
    let longestBody: Int
    /// Who is served fairly.
    let host: String
    let arrived: MonotonicTime
    /// Takes the answer, if it makes sense; else it is still owed one. To be called once, or ``fail``.
    let accept: @Sendable (_ message: [UInt8], _ body: [UInt8]) -> Bool
    /// It isn't done. To be called once, or ``accept``.
    let fail: @Sendable (BodyWorkFailure) -> Void
}
