import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySession

/// Sends one signal to the collector: at an interval, later and later after failures, one request at a time. On the
/// daemon's main loop.
final class TelemetrySender {
    /// The contents of a request.
    struct Batch {
        let body: [UInt8]
        /// Data points or log records.
        let count: Int
        /// Called once.
        let settle: (Fate) -> Void
    }

    enum Fate {
        case taken
        /// The batch may be sent later.
        case returned
        case refused
    }

    /// Gives the next batch; nil: there is nothing to send. Called on the loop, as is the completion, at most once.
    typealias Source = (_ completion: @escaping (Batch?) -> Void) -> Void

    /// The time limit of one request; OpenTelemetry's default.
    private static let patience: Duration = .seconds(10)
    /// Requests without a pause.
    private static let inARow = 8

    let signal: TelemetrySettings.Signal
    private let settings: TelemetrySettings
    private let session: LoopSession
    private let logger: Logger
    private let daemon: TelemetryWatch.Daemon
    private let source: Source
    /// Whether more data waits already.
    private let hasMore: () -> Bool
    private var pace: ServicePace
    private var pause: Timer?
    private var isGathering = false
    private var inFlight: (exchange: ServiceExchange, batch: Batch)?
    private var sentInARow = 0
    private var lastRejection: CollectorAnswer.Rejection?
    private(set) var status: TelemetryStatus.Signal
    private var finished: (() -> Void)?
    private var isLastTry = false
    /// It has been stopped.
    private(set) var isFinished = false

    init(
        _ signal: TelemetrySettings.Signal, _ settings: TelemetrySettings, session: LoopSession, logger: Logger,
        daemon: TelemetryWatch.Daemon, hasMore: @escaping () -> Bool, source: @escaping Source
    ) {
        self.signal = signal
        self.settings = settings
        self.session = session
        self.logger = logger
        self.daemon = daemon
        self.hasMore = hasMore
        self.source = source
        pace = ServicePace(interval: settings.interval, longest: .seconds(300))
        status = TelemetryStatus.Signal(signal)
    }

    func send() {
        guard inFlight == nil, !isGathering, !isFinished else { return }
        pause = nil
        isGathering = true
        source { [weak self] batch in
            guard let self, isGathering else { return batch?.settle(.returned) ?? () }
            isGathering = false
            guard let batch else { return over() }
            post(batch)
        }
    }

    /// Cancels the batch in flight, which may be sent later.
    func stop() {
        isFinished = true
        pause = nil
        isGathering = false
        if let (exchange, batch) = inFlight {
            inFlight = nil
            exchange.cancel()
            batch.settle(.returned)
        }
        let finished = finished
        self.finished = nil
        finished?()
    }

    /// Makes a last try, unless the one before failed.
    /// - Parameter completion: called once on the loop.
    func finish(_ completion: @escaping () -> Void) {
        finished = completion
        guard status.failure == nil else { return stop() }
        pause = nil
        guard inFlight == nil, !isGathering else { return }
        isLastTry = true
        send()
    }

    private func post(_ batch: Batch) {
        guard let configuration = daemon.configuration() else { return batch.settle(.returned) }
        let fields = [("Content-Type", OTLPDocument.type), ("Accept-Encoding", "identity")]
        let exchange: ServiceExchange
        do {
            exchange = ServiceExchange(
                try ServiceRequest(
                    pinned: settings.url(of: signal), fields: fields, body: batch.body,
                    authorization: settings.authorization, under: configuration),
                session: session, within: Self.patience, bodyLimit: CollectorAnswer.bodyLimit,
                refusal: ProxyError.ofService)
        } catch {
            batch.settle(.refused)
            return failed("\(error)", batch, isLost: true)
        }
        inFlight = (exchange, batch)
        exchange.start { [weak self] result in
            guard let self else { return batch.settle(.returned) }
            inFlight = nil
            judge(result, batch)
        }
    }

    private func judge(_ result: Result<ServiceExchange.Response, ServiceFailure>, _ batch: Batch) {
        let answer: CollectorAnswer
        switch result {
        case .success(let response):
            answer = CollectorAnswer(
                status: response.status, type: response.value(.contentType), retryAfter: response.value(.retryAfter),
                body: response.body, at: daemon.unixTime())
        case .failure(let failure): answer = .later(cause: failure.cause, after: nil)
        }
        switch answer {
        case .taken(let rejection):
            batch.settle(.taken)
            taken(batch, rejection)
        case .later(let cause, let wait):
            batch.settle(.returned)
            failed(cause, batch, isLost: false, wait: wait)
        case .refused(let cause):
            batch.settle(.refused)
            failed(cause, batch, isLost: true)
        }
    }

    private func taken(_ batch: Batch, _ rejection: CollectorAnswer.Rejection?) {
        if status.failure != nil { logger.notice("telemetry.failed", metadata: fields(["effect": "over"])) }
        pace.succeeded()
        status.answered = daemon.unixTime()
        status.failure = nil
        let rejected = min(rejection?.count ?? 0, UInt64(batch.count))
        status.sent += UInt64(batch.count) - rejected
        status.dropped += rejected
        if let rejection, rejection.message != lastRejection?.message {
            lastRejection = rejection
            logger.warning(
                "telemetry.rejected",
                metadata: fields([
                    "cause": "the collector says: \(rejection.message)", "dropped": .stringConvertible(rejected),
                ]))
        }
        sentInARow += 1
        if sentInARow < Self.inARow, hasMore() { return send() }
        over()
    }

    /// Logged when it begins.
    private func failed(_ cause: String, _ batch: Batch, isLost: Bool, wait: Duration? = nil) {
        pace.failed()
        if status.failure == nil {
            let effect =
                signal == .logs
                ? (isLost ? "these events are lost" : "events wait; beyond the limit the oldest are dropped")
                : "the next metrics include these"
            logger.warning("telemetry.failed", metadata: fields(["cause": "\(cause)", "effect": "\(effect)"]))
        }
        status.failures += 1
        status.failure = cause
        if isLost { status.dropped += UInt64(batch.count) }
        over(wait)
    }

    private func over(_ wait: Duration? = nil) {
        sentInARow = 0
        guard finished != nil else {
            let pause = max(pace.pause(Double.random(in: 0...1)), wait ?? .zero)
            self.pause = Timer(loop: session.loop, owner: self, afterNanoseconds: pause.nanoseconds) { $0.send() }
            return
        }
        guard !isLastTry, status.failure == nil else { return stop() }
        isLastTry = true
        send()
    }

    private func fields(_ more: Logger.Metadata) -> Logger.Metadata {
        more.merging(["signal": "\(signal.rawValue)", "url": "\(settings.url(of: signal))"]) { $1 }
    }
}
