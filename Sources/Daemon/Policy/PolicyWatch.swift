import Logging
import PinproxyBundles
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// Fetches the policy bundle at intervals, and has it put into force, whole or not at all. On the daemon's main loop.
final class PolicyWatch {
    /// The parts of the daemon that it uses.
    struct Daemon {
        let configuration: () -> ActiveConfiguration?
        let unixTime: () -> UnixTime
        /// Puts a bundle (nil: the accepted one) into force with the present files, once it is stored.
        ///
        /// The closure stores it, and returns why it couldn't. Returns why nothing has changed; nil: it is in force.
        let renew: (_ candidate: KeptBundle?, _ keep: () -> String?) -> String?
        /// Denies every host; says why.
        let deny: (String) -> Void
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
        /// When the bundle in force expires; nil: none is in force.
        var expires: UnixTime?
    }

    private static let patience: Duration = .seconds(60)
    /// Longer ones aren't sent back: a server may refuse the request for them.
    private static let longestTag = 256

    private let loop: EventLoop
    private let session: LoopSession
    let logger: Logger
    let daemon: Daemon
    let stage = RolloutStage.ofThisMachine
    private(set) var settings: PolicySettings?
    private var pace = ServicePace(interval: .zero)
    var kept: KeptBundle?
    /// Whether the kept bundle was read.
    private var isRemembered = false
    private var inFlight: ServiceExchange?
    private var pause: Timer?
    private var ending: Timer?
    private var lastWarning: UnixTime = 0
    var figures = Figures()

    init(loop: EventLoop, session: LoopSession, logger: Logger, daemon: Daemon) {
        self.loop = loop
        self.session = session
        self.logger = logger
        self.daemon = daemon
    }

    /// Follows a configuration that was put into force. New settings are tried at once.
    func follow(_ snapshot: Snapshot) {
        if snapshot.policy != settings {
            inFlight?.cancel()
            inFlight = nil
            pause = nil
            settings = snapshot.policy
            figures = Figures()
            (kept, isRemembered) = (nil, false)
            if let settings {
                pace = ServicePace(interval: settings.interval)
                look()
            }
        }
        awaitEnd(snapshot.bundle?.expires)
    }

    func stop() {
        pause = nil
        ending = nil
        inFlight?.cancel()
        inFlight = nil
    }

    // MARK: The server

    private func look() {
        guard let settings, let configuration = daemon.configuration(), inFlight == nil else { return }
        pause = nil
        let exchange: ServiceExchange
        do {
            if !isRemembered {
                // Without it an older bundle would be accepted.
                kept = settings.remembered(try file(of: configuration.snapshot).read())
                isRemembered = true
            }
            exchange = ServiceExchange(
                try request(settings, configuration), session: session, within: Self.patience,
                bodyLimit: BundleDocument.bytesLimit, refusal: ProxyError.ofService)
        } catch {
            return failed("\(error)")
        }
        inFlight = exchange
        exchange.start { [weak self] result in
            guard let self else { return }
            inFlight = nil
            switch result {
            case .success(let response): judge(response, settings)
            case .failure(let failure): failed(failure.cause)
            }
        }
    }

    func file(of snapshot: Snapshot) -> StateFile<KeptBundle> {
        StateFile(KeptBundle.fileName, in: snapshot.stateDirectory)
    }

    private func request(
        _ settings: PolicySettings, _ configuration: ActiveConfiguration
    ) throws -> ServiceRequest {
        var fields = [("Accept-Encoding", "identity")]
        if let tag = tag(for: settings) { fields.append(("If-None-Match", tag)) }
        return try ServiceRequest(pinned: settings.bundle, fields: fields, under: configuration)
    }

    private func tag(for settings: PolicySettings) -> String? {
        kept?.tag.flatMap { $0.url == settings.bundle.address ? $0.etag : nil }
    }

    private func judge(_ response: ServiceExchange.Response, _ settings: PolicySettings) {
        let sent = tag(for: settings)
        switch response.status {
        case 304 where sent != nil: confirmed()
        case 200: take(response.body, tag: Self.tag(of: response, settings), settings)
        default:
            // The condition may be what it objects to.
            if sent != nil, (400..<500).contains(response.status), let kept {
                self.kept = kept.knowing(kept.latest, tag: nil)
            }
            failed("the server answered \(response.status)")
        }
    }

    private static func tag(of response: ServiceExchange.Response, _ settings: PolicySettings) -> KeptBundle.Tag? {
        guard let text = response.value(.etag), text.utf8.count <= longestTag,
            EntityTag.parse(Array(text.utf8).span) != nil
        else { return nil }
        return KeptBundle.Tag(etag: text, url: settings.bundle.address)
    }

    /// The server has nothing else. A denial may be of a clock that was wrong, or of files that were.
    func confirmed() {
        if let settings, let kept, daemon.configuration()?.snapshot.denial != nil,
            let bundle = try? settings.inForce(kept), bundle.expires > daemon.unixTime(),
            let cause = daemon.renew(nil, { nil })
        {
            return failed("bundle version \(bundle.version) can't be put into force: \(cause)")
        }
        pace.succeeded()
        figures.answered = daemon.unixTime()
        figures.failure = nil
        warnOfEnd()
        wait()
    }

    func failed(_ cause: String) {
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
}

// MARK: The end of a bundle

extension PolicyWatch {
    /// The warning becomes an error.
    private static let longAgo: UnixTime = 7 * 86_400
    private static let day: UnixTime = 86_400

    /// Afterwards `on_expiry` decides.
    func awaitEnd(_ expires: UnixTime?) {
        ending = nil
        figures.expires = expires
        guard let expires else { return }
        let left = expires - daemon.unixTime()
        guard left > 0 else { return warnOfEnd() }
        // The wall clock may be set meanwhile.
        setTimer(left)
    }

    private func setTimer(_ left: UnixTime) {
        ending = Timer(loop: loop, owner: self, afterNanoseconds: UInt64(min(left, 3600)) * 1_000_000_000) { watch in
            guard let expires = watch.figures.expires else { return }
            let left = expires - watch.daemon.unixTime()
            if left > 0 { watch.setTimer(left) } else { watch.ended(expires) }
        }
    }

    private func ended(_ expires: UnixTime) {
        guard let cause = daemon.renew(nil, { nil }) else { return }
        let version = kept?.state.bundleVersion ?? 0
        failed("bundle version \(version) has expired, and the files can't be read again: \(cause)")
        // Denied is what the files would have said.
        if settings?.onExpiry == .deny {
            daemon.deny("bundle version \(version) expired at \(BundleTime.text(expires))")
        }
    }

    /// Once a day; after a week as an error.
    private func warnOfEnd() {
        let now = daemon.unixTime()
        guard let bundle = daemon.configuration()?.snapshot.bundle, let expires = figures.expires, expires <= now,
            now - lastWarning >= Self.day
        else { return }
        lastWarning = now
        let fields: Logger.Metadata = [
            "version": .stringConvertible(bundle.version), "date": "\(CalendarDate(expires))",
            "days_left": .stringConvertible((expires - now) / Self.day),
            "effect": "it stays in force (on_expiry: keep)",
        ]
        if now - expires > Self.longAgo {
            logger.error("policy.expired", metadata: fields)
        } else {
            logger.warning("policy.expired", metadata: fields)
        }
    }
}
