import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySession
import PinproxyTLS

/// Sends figures and events of this machine to a collector, if pinproxy.yaml names one. On the daemon's main loop.
final class TelemetryWatch {
    /// The parts of the daemon that it uses.
    struct Daemon {
        let configuration: () -> ActiveConfiguration?
        let unixTime: () -> UnixTime
        let version: String
        /// Calls the completion once, with figures encoded for the resource.
        let measure: (OTLPDocument.Resource, _ completion: @escaping (TelemetrySender.Batch?) -> Void) -> Void
    }

    private let session: LoopSession
    private let buffer: TelemetryBuffer
    private let logger: Logger
    private let daemon: Daemon
    private var settings: TelemetrySettings?
    private var senders: [TelemetrySender] = []
    private var limit: Timer?
    /// Events that were dropped when it was last logged.
    private var toldDropped: UInt64 = 0
    private var isTellingDropped = false

    init(session: LoopSession, buffer: TelemetryBuffer, logger: Logger, daemon: Daemon) {
        self.session = session
        self.buffer = buffer
        self.logger = logger
        self.daemon = daemon
    }

    /// Follows a configuration that was put into force. New settings are tried at once.
    func follow(_ snapshot: Snapshot) {
        guard snapshot.telemetry != settings else { return }
        stop()
        settings = snapshot.telemetry
        buffer.open(settings?.sendsEvents == true)
        toldDropped = min(toldDropped, buffer.dropped)
        guard let settings else { return }
        let resource = OTLPDocument.Resource(
            settings, stateDirectory: snapshot.stateDirectory, version: daemon.version)
        senders = settings.signals.map { sender($0, settings, resource) }
        for sender in senders { sender.send() }
    }

    private func sender(
        _ signal: TelemetrySettings.Signal, _ settings: TelemetrySettings, _ resource: OTLPDocument.Resource
    ) -> TelemetrySender {
        switch signal {
        case .metrics:
            TelemetrySender(
                signal, settings, session: session, logger: logger, daemon: daemon, hasMore: { false },
                source: { [daemon] in daemon.measure(resource, $0) })
        case .logs:
            TelemetrySender(
                signal, settings, session: session, logger: logger, daemon: daemon,
                hasMore: { [buffer] in !buffer.isEmpty },
                source: { [weak self] completion in completion(self?.events(for: resource)) })
        }
    }

    /// Nil: none waits.
    private func events(for resource: OTLPDocument.Resource) -> TelemetrySender.Batch? {
        let records = buffer.take()
        tellDropped(isOver: false)
        guard !records.isEmpty else { return nil }
        return TelemetrySender.Batch(
            body: OTLPLogRecord.request(records, of: resource), count: records.count
        ) { [weak self, buffer] fate in
            switch fate {
            case .taken: self?.tellDropped(isOver: true)
            case .returned: buffer.putBack(records)
            case .refused: break
            }
        }
    }

    /// Logs that events were dropped when it begins, and how many those were once the collector takes some again.
    private func tellDropped(isOver: Bool) {
        let dropped = buffer.dropped
        guard dropped > toldDropped, isOver || !isTellingDropped else { return }
        isTellingDropped = !isOver
        logger.warning(
            "telemetry.dropped",
            metadata: [
                "dropped": .stringConvertible(dropped - toldDropped),
                "cause": "more events wait for the collector than are kept", "effect": "the oldest are lost",
            ])
        toldDropped = dropped
    }

    /// Sends the last figures: the next proxy of this machine has the same series. Events continue.
    func drain() {
        for sender in senders where sender.signal == .metrics { sender.finish {} }
    }

    /// Makes a last try for each signal.
    /// - Parameter completion: called once on the loop, at the latest after two seconds.
    func finish(_ completion: @escaping () -> Void) {
        let open = senders.filter { !$0.isFinished }
        guard !open.isEmpty else { return completion() }
        var left = open.count
        limit = Timer(loop: session.loop, owner: self, afterNanoseconds: Self.lastTry) { $0.stop() }
        for sender in open {
            sender.finish {
                left -= 1
                if left == 0 { completion() }
            }
        }
    }

    private static let lastTry: UInt64 = 2_000_000_000

    func stop() {
        limit = nil
        for sender in senders { sender.stop() }
        senders = []
    }

    /// Nil: no collector is named.
    var status: TelemetryStatus? {
        guard let settings else { return nil }
        return TelemetryStatus(
            url: "\(settings.collector)",
            signals: senders.map { sender in
                var status = sender.status
                if sender.signal == .logs { status.dropped += buffer.dropped }
                return status
            })
    }
}
