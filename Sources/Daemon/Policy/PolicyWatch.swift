import Bundles
import Clients
import Configuration
import EventLoop
import HTTPWire
import Logging
import Records
import Security
import Session
import TLS

/// Fetches the policy bundle again and again, verifies it, and has it put into force, whole or not at all. On the
/// daemon's main loop.
final class PolicyWatch {
    /// What it asks of the daemon.
    struct Daemon {
        let configuration: () -> ActiveConfiguration?
        let unixTime: () -> UnixTime
        /// Whether the configuration can be read with the bundle; nil: it can.
        let objection: (KeptBundle) -> String?
        /// Reads the configuration again; nil: it is in force.
        let reload: () -> String?
    }

    /// For `status`, metrics and the page.
    struct Figures {
        /// Unix seconds of the last answer that could be used.
        var answered: UnixTime?
        var failures = 0
        /// Why the last try failed; nil: it didn't.
        var failure: String?
        /// A bundle that isn't for this machine yet.
        var waiting: Int?
    }

    private static let patience: Duration = .seconds(60)
    /// The warning becomes an error.
    private static let longAgo: UnixTime = 7 * 86_400
    private static let day: UnixTime = 86_400

    private let loop: EventLoop
    private let session: LoopSession
    private let logger: Logger
    private let daemon: Daemon
    private let stage = RolloutStage.ofThisMachine
    private var settings: PolicySettings?
    private var pace = PolicyPace(interval: .zero)
    private var kept: KeptBundle?
    private var underWay: ServiceExchange?
    private var pause: Timer?
    private var ending: Timer?
    private var lastWarning: UnixTime = 0
    private(set) var figures = Figures()

    init(loop: EventLoop, session: LoopSession, logger: Logger, daemon: Daemon) {
        self.loop = loop
        self.session = session
        self.logger = logger
        self.daemon = daemon
    }

    /// Follows a configuration that was put into force. New settings are tried at once.
    func follow(_ snapshot: Snapshot) {
        awaitEnd(of: snapshot.bundle)
        guard snapshot.policy != settings else { return }
        underWay?.cancel()
        underWay = nil
        pause = nil
        settings = snapshot.policy
        figures = Figures()
        guard let settings else { return }
        pace = PolicyPace(interval: settings.interval)
        kept = settings.remembered(try? file(of: snapshot).read())
        look()
    }

    func stop() {
        pause = nil
        ending = nil
        underWay?.cancel()
        underWay = nil
    }

    private func file(of snapshot: Snapshot) -> StateFile<KeptBundle> {
        StateFile(KeptBundle.fileName, in: snapshot.stateDirectory)
    }

    // MARK: The server

    private func look() {
        guard let settings, let configuration = daemon.configuration(), underWay == nil else { return }
        pause = nil
        let exchange: ServiceExchange
        do {
            exchange = ServiceExchange(
                try request(settings, configuration), session: session, within: Self.patience,
                bodyLimit: BundleDocument.bytesLimit,
                refusal: ProxyError.ofService)
        } catch {
            return failed("\(error)")
        }
        underWay = exchange
        exchange.start { [weak self] result in
            guard let self else { return }
            underWay = nil
            switch result {
            case .success(let response): judge(response, configuration.snapshot)
            case .failure(let failure): failed(failure.cause)
            }
        }
    }

    /// Pins of the server's own entry hold, whatever its action is.
    private func request(
        _ settings: PolicySettings, _ configuration: ActiveConfiguration
    ) throws -> ServiceRequest {
        let (url, snapshot) = (settings.bundle, configuration.snapshot)
        let entry = snapshot.entry(for: url.host, port: url.port)
        var fields = [("Accept-Encoding", "identity")]
        if let etag = kept?.etag { fields.append(("If-None-Match", etag)) }
        return try ServiceRequest(
            url, fields: fields, upstream: configuration.upstream, policy: entry?.policy ?? snapshot.defaultPolicy,
            tls: entry?.tls)
    }

    private func judge(_ response: ServiceExchange.Response, _ snapshot: Snapshot) {
        switch response.status {
        case 304 where kept?.etag != nil: answered()
        case 200: take(response.body, etag: response.value(.etag), snapshot)
        default: failed("the server answered \(response.status)")
        }
    }

    private func answered() {
        pace.succeeded()
        figures.answered = daemon.unixTime()
        figures.failure = nil
        warnOfEnd()
        wait()
    }

    private func failed(_ cause: String) {
        pace.failed()
        figures.failures += 1
        figures.failure = cause
        logger.warning(
            "policy.failed",
            metadata: [
                "url": "\(settings.map { "\($0.bundle)" } ?? "")", "cause": "\(cause)",
                "effect":
                    "\(kept.map { "bundle version \($0.state.bundleVersion) stays" } ?? "there is no bundle yet")",
            ])
        warnOfEnd()
        wait()
    }

    private func wait() {
        let pause = pace.pause(Double.random(in: 0...1))
        self.pause = Timer(loop: loop, owner: self, afterNanoseconds: pause.nanoseconds) { $0.look() }
    }

    // MARK: The bundle

    private func take(_ bytes: [UInt8], etag: String?, _ snapshot: Snapshot) {
        guard let settings else { return }
        let verified: VerifiedBundle
        do throws(BundleError) {
            verified = try settings.verifier.verify(bytes, after: kept?.state, at: daemon.unixTime())
        } catch {
            return failed("the bundle is refused: \(error)")
        }
        let bundle = verified.bundle
        if let objection = settings.objection(to: bundle) { return failed(objection) }
        let isAnother = kept?.state.bundleDigest != bundle.digest
        guard !isAnother || stage.isReached(by: bundle.stage) else {
            if figures.waiting != bundle.version {
                logger.notice(
                    "policy.waiting",
                    metadata: [
                        "version": .stringConvertible(bundle.version),
                        "cause":
                            "it is for \(bundle.stage ?? 100) of 100 machines, and this one has place \(stage.place)",
                    ])
            }
            figures.waiting = bundle.version
            return answered()
        }
        figures.waiting = nil
        let fresh = KeptBundle(
            bytes: bytes, state: verified.state, accepted: daemon.unixTime(), etag: etag, by: settings)
        if isAnother, let objection = daemon.objection(fresh) {
            return failed("bundle version \(bundle.version) can't be put into force: \(objection)")
        }
        let former = kept
        do throws(StateFileProblem) {
            try file(of: snapshot).write(fresh)
        } catch {
            // Not kept, it would be forgotten by a restart, and an older one accepted again.
            return failed("\(error)")
        }
        kept = fresh
        // New dates alone change them too.
        if let cause = daemon.reload() {
            kept = former
            if let former { try? file(of: snapshot).write(former) }
            return failed("bundle version \(bundle.version) can't be put into force: \(cause)")
        }
        if isAnother {
            logger.notice(
                "policy.accepted",
                metadata: [
                    "version": .stringConvertible(bundle.version), "digest": "\(bundle.digest)",
                    "url": "\(settings.bundle)", "note": "\(bundle.note ?? "")",
                ])
        }
        answered()
    }

    // MARK: Its end

    /// At that instant the configuration is read again: `on_expiry` says what holds then.
    private func awaitEnd(of bundle: BundleInForce?) {
        ending = nil
        guard let bundle else { return }
        let left = bundle.expires - daemon.unixTime()
        guard left > 0 else { return warnOfEnd() }
        // The wall clock may be set meanwhile.
        ending = Timer(loop: loop, owner: self, afterNanoseconds: UInt64(min(left, 3600)) * 1_000_000_000) { watch in
            if bundle.expires > watch.daemon.unixTime() {
                watch.awaitEnd(of: bundle)
            } else {
                _ = watch.daemon.reload()
            }
        }
    }

    /// Once a day; after a week as an error.
    private func warnOfEnd() {
        guard let bundle = daemon.configuration()?.snapshot.bundle else { return }
        let now = daemon.unixTime()
        guard bundle.expires <= now, now - lastWarning >= Self.day else { return }
        lastWarning = now
        let fields: Logger.Metadata = [
            "version": .stringConvertible(bundle.version), "date": "\(CalendarDate(bundle.expires))",
            "days_left": .stringConvertible((bundle.expires - now) / Self.day),
            "effect": "it stays in force (on_expiry: keep)",
        ]
        if now - bundle.expires > Self.longAgo {
            logger.error("policy.expired", metadata: fields)
        } else {
            logger.warning("policy.expired", metadata: fields)
        }
    }
}
