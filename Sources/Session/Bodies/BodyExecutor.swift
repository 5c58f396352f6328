package import EventLoop
package import Serialization
package import Transport

/// Works on whole bodies away from the loops. Every piece of work is answered once, unless it is cancelled before.
package protocol BodyExecutor: Sendable {
    /// - Parameters:
    ///   - host: who is served fairly: the origin, by its name.
    ///   - answer: called once on another thread, perhaps before this returns.
    func perform<Work: BodyWork>(
        _ work: Work, on body: [UInt8], of host: String,
        answer: @escaping @Sendable (Result<Work.Outcome, BodyWorkFailure>) -> Void
    ) -> BodyWorkTicket
}

extension BodyExecutor {
    /// - Parameters:
    ///   - reservation: the body's, held as long as the body.
    ///   - answer: called once on the loop, in a later turn, or never if the loop ends. It may be released on another
    ///     thread, so it should hold its objects weakly.
    package func perform<Work: BodyWork>(
        _ work: Work, on body: [UInt8], of host: String, holding reservation: BodyReservation, loop: EventLoop,
        answer: @escaping (Result<Work.Outcome, BodyWorkFailure>) -> Void
    ) -> BodyWorkTicket {
        let answer = LoopBound(answer, on: loop)
        let handle = loop.handle
        return perform(work, on: body, of: host) { outcome in
            withExtendedLifetime(reservation) {}
            handle.post { loop in answer.value(on: loop)(outcome) }
        }
    }
}

package struct BodyWorkTicket: Sendable {
    private let cancelled: @Sendable () -> Void

    package init(cancelled: @escaping @Sendable () -> Void) { self.cancelled = cancelled }

    /// Drops work that hasn't begun, without an answer. May be called on any thread, and repeated.
    package func cancel() { cancelled() }
}

/// Why work on a body wasn't done. Whether the body is right isn't known.
package enum BodyWorkFailure: Error, Sendable, Hashable {
    case noRoom
    /// The bodies that are kept take all that they may together (`limits.bodies`).
    case noBudget(limit: Int)
    /// The process that does such work can't be started; why, for people.
    case unavailable(String)
    case timedOut(after: Duration)
    /// The process that did it ended; how, for people.
    case ended(String)
    /// The process that did it answered what makes no sense.
    case malformedAnswer

    /// The body has made it fail, and would again.
    package var isOfBody: Bool {
        switch self {
        case .noRoom, .noBudget, .unavailable: false
        case .timedOut, .ended, .malformedAnswer: true
        }
    }

    package var cause: String {
        switch self {
        case .noRoom: "too many bodies wait to be judged or converted"
        case .noBudget(let limit): "the bodies that are kept now take all of \(limit) bytes (limits.bodies)"
        case .unavailable(let why): "no process can be started to decode it: \(why)"
        case .timedOut(let time): "decoding it took longer than \(time)"
        case .ended(let how): "the process that decoded it ended (\(how))"
        case .malformedAnswer: "the process that decoded it gave an answer that makes no sense"
        }
    }
}
