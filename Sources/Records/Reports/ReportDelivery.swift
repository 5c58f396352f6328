package import Logging
import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxySecurity
package import PinproxySession
package import PinproxyTLS
import PinproxyTransport

/// Sends reports on the main loop, over separate connections: a few at a time, each tried twice. Only the trust anchors
/// verify the collector: the reported pins must not block reports about them.
package final class ReportDelivery {
    struct Letter: Sendable {
        let body: [UInt8]
        let destination: ServiceURL
        let host: String
        fileprivate(set) var tries = 0
    }

    private static let atOnce = 4
    private static let waitingAtMost = 64
    private static let tries = 2
    private static let longestTry: Duration = .seconds(10)
    private static let pauseNanoseconds: UInt64 = 1_000_000_000

    private let loop: EventLoop
    private let session: LoopSession
    private let resolver: Resolver
    private let logger: Logger
    private let refusal: ServiceRefusal
    private var upstream: UpstreamSettings
    private var limit: Duration
    private var waiting: [Letter] = []
    private var inFlight: [ObjectIdentifier: ServiceExchange] = [:]
    /// Waits for second tries.
    private var pauses: [Int: Timer] = [:]
    private var pauseCount = 0
    /// Until the end of the minute with dropped reports, or of the proxy.
    private var dropping: (timer: Timer, tell: () -> Void)?

    package init(
        loop: EventLoop, upstream: UpstreamSettings, timeouts: Timeouts, listeners: OwnListeners, logger: Logger,
        unixTime: @escaping @Sendable () -> UnixTime, refusal: @escaping ServiceRefusal
    ) throws {
        self.loop = loop
        self.refusal = refusal
        self.upstream = upstream
        limit = Self.limit(timeouts)
        self.logger = logger
        resolver = try Resolver(loop: loop, cache: ResolverCache())
        let slabs = SlabPool()
        let pool = UpstreamPool()
        session = LoopSession(
            loop: loop, slabs: slabs, pool: pool,
            connector: UpstreamConnector(
                loop: loop, resolver: resolver, slabs: slabs, pool: pool, sessions: UpstreamSessionCache(),
                listeners: listeners, tls: try TLSClientContext(options: .init(for: TrustRequirements())),
                unixTime: unixTime))
    }

    package var connector: UpstreamConnector { session.connector }

    package func replace(with fresh: UpstreamSettings, _ timeouts: Timeouts) {
        upstream = fresh
        limit = Self.limit(timeouts)
        reloadResolver()
    }

    package func reloadResolver() {
        do {
            try resolver.reload()
        } catch {
            logger.error("resolver.reload", metadata: ["cause": "\(error)"])
        }
    }

    /// At most ten seconds, and the timeouts of a client's request.
    private static func limit(_ timeouts: Timeouts) -> Duration {
        min(longestTry, timeouts.connect + timeouts.tlsHandshake + timeouts.firstByte)
    }

    func deliver(_ letter: Letter) {
        guard waiting.count < Self.waitingAtMost else {
            return failed(letter, "\(Self.waitingAtMost) reports are waiting already")
        }
        waiting.append(letter)
        send()
    }

    /// Calls `tell` once, after a time or when the proxy stops.
    func tellDropped(after nanoseconds: UInt64, tell: @escaping () -> Void) {
        dropping?.tell()
        let timer = Timer(loop: loop, owner: self, afterNanoseconds: nanoseconds) { $0.tellDropped() }
        dropping = (timer, tell)
    }

    private func tellDropped() {
        dropping?.tell()
        dropping = nil
    }

    /// The proxy stops: cancels reports.
    package func stop() {
        tellDropped()
        waiting = []
        pauses = [:]
        for post in inFlight.values { post.cancel() }
        inFlight = [:]
        session.pool.close()
    }

    private func send() {
        while inFlight.count + pauses.count < Self.atOnce, !waiting.isEmpty { send(waiting.removeFirst()) }
    }

    private func send(_ letter: Letter) {
        var letter = letter
        letter.tries += 1
        let post: ServiceExchange
        do {
            let request = try ServiceRequest(
                letter.destination, fields: [("Content-Type", "application/json")], body: letter.body,
                upstream: upstream)
            post = ServiceExchange(request, session: session, within: limit, bodyLimit: 0, refusal: refusal)
        } catch {
            return failed(letter, "\(error)")
        }
        let number = ObjectIdentifier(post)
        inFlight[number] = post
        post.start { [weak self] result in
            guard let self else { return }
            inFlight[number] = nil
            let failure = Self.failure(of: result)
            if let failure, letter.tries < Self.tries {
                logger.debug("pin.report.again", metadata: fields(letter, ["cause": "\(failure)"]))
                return pause(letter)
            }
            if let failure { failed(letter, failure) } else { logger.info("pin.report.sent", metadata: fields(letter)) }
            send()
        }
    }

    private static func failure(of result: Result<ServiceExchange.Response, ServiceFailure>) -> String? {
        switch result {
        case .success(let response) where (200..<300).contains(response.status): nil
        case .success(let response): "the collector answered \(response.status)"
        case .failure(let failure): failure.cause
        }
    }

    private func pause(_ letter: Letter) {
        pauseCount += 1
        let number = pauseCount
        pauses[number] = Timer(loop: loop, owner: self, afterNanoseconds: Self.pauseNanoseconds) {
            $0.pauses[number] = nil
            $0.send(letter)
        }
    }

    private func failed(_ letter: Letter, _ cause: String) {
        logger.warning("pin.report.failed", metadata: fields(letter, ["cause": "\(cause)"]))
    }

    private func fields(_ letter: Letter, _ more: Logger.Metadata = [:]) -> Logger.Metadata {
        more.merging(["host": "\(letter.host)", "report_uri": "\(letter.destination)"]) { $1 }
    }
}
