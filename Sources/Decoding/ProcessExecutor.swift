import PinproxyEventLoop
package import PinproxySerialization
package import PinproxySession
import Synchronization

/// Does all work that needs a decoder in confined processes. Other work runs on threads.
package final class ProcessExecutor: BodyExecutor {
    private let threads: ThreadExecutor
    private let pool: LoopThread<DecoderPool>
    private let tally: DecoderTally
    private let last = Atomic<UInt64>(0)

    /// - Parameter executable: the path of this program.
    package init(
        limits: DecoderLimits = DecoderLimits(), executable: String = "/proc/self/exe",
        events: DecoderEvents = DecoderEvents()
    ) throws {
        let tally = DecoderTally()
        self.tally = tally
        threads = ThreadExecutor { lack in
            switch lack {
            case .refused(let count, let cause):
                tally.count { $0.refused += count }
                if let cause { events.unavailable?(cause) }
            case .over: events.availableAgain?()
            }
        }
        pool = try LoopThread.start("decoders", stackSize: 256 << 10) { loop in
            DecoderPool(loop: loop, limits: limits, executable: executable, events: events, tally: tally)
        }
    }

    package var counts: DecoderCounts { tally.now }

    package func perform<Work: BodyWork>(
        _ work: Work, on body: [UInt8], of host: String,
        answer: @escaping @Sendable (Result<Work.Outcome, BodyWorkFailure>) -> Void
    ) -> BodyWorkTicket {
        guard work.needsDecoder else { return threads.perform(work, on: body, of: host, answer: answer) }
        let number = last.add(1, ordering: .relaxed).newValue
        let job = DecoderJob(
            number: number, message: work.message, body: body, longestBody: max(work.longestBody, body.count),
            host: host,
            arrived: .now()
        ) { message, body in
            guard let outcome = try? work.outcome(told: message, body) else { return false }
            answer(.success(outcome))
            return true
        } fail: {
            answer(.failure($0))
        }
        guard pool.perform({ $0.add(job) }) else {
            answer(.failure(.unavailable("the proxy stops")))
            return BodyWorkTicket {}
        }
        return BodyWorkTicket { [pool] in pool.perform { $0.cancel(number) } }
    }

    /// Calls back on the pool's thread, between two turns.
    package func ask(_ answer: @escaping @Sendable () -> Void) { pool.perform { _ in answer() } }

    /// Ends the processes and the pool's thread. Waiting work fails as not done.
    package func stop() {
        pool.perform { $0.stop() }
        pool.stop()
    }
}
