package import PinproxyEventLoop
package import PinproxySerialization
package import PinproxyTransport

/// Works on whole bodies off the loops. Each piece of work is answered once, unless it is cancelled first.
package protocol BodyExecutor: Sendable {
    /// - Parameters:
    ///   - host: the origin, for fairness between hosts.
    ///   - answer: called once on another thread, perhaps before this returns.
    func perform<Work: BodyWork>(
        _ work: Work, on body: [UInt8], of host: String,
        answer: @escaping @Sendable (Result<Work.Outcome, BodyWorkFailure>) -> Void
    ) -> BodyWorkTicket
}

extension BodyExecutor {
    /// - Parameters:
    ///   - reservation: the body's, held as long as the body.
    ///   - answer: called once on the loop in a later turn, or never if the loop ends. Another thread may release it.
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

/// Why a body wasn't judged.
package enum BodyWorkFailure: Error, Sendable, Hashable {
    case noRoom
    /// `limits.bodies` is spent.
    case noBudget(limit: Int)
    /// The worker process can't be started, with a human-readable reason.
    case unavailable(String)
    case timedOut(after: Duration)
    /// The worker process ended, with a human-readable account.
    case ended(String)
    case malformedAnswer

    /// The body itself made the work fail, and would again.
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
