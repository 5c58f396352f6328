import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySession

/// Sends metrics and logs to the collector that pinproxy.yaml names, if any.
extension ProxyDaemon {
    func telemetryWatch(_ session: LoopSession, _ context: ProxyContext) -> TelemetryWatch {
        // unowned: only the loop calls it; the loop runs within run(), and run()'s caller keeps the daemon.
        let daemon = { [unowned self] in self }
        return TelemetryWatch(
            session: session, buffer: output.telemetry, logger: logger,
            daemon: .init(
                configuration: { daemon().configurationInForce }, unixTime: { WallClock.milliseconds() / 1000 },
                version: Self.version,
                measure: { resource, completion in daemon().measure(context, for: resource, completion) }))
    }

    private func measure(
        _ context: ProxyContext, for resource: OTLPDocument.Resource,
        _ completion: @escaping (TelemetrySender.Batch?) -> Void
    ) {
        metrics(context) { [weak self] report in
            guard let self, let report else { return completion(nil) }
            let time = UInt64(max(WallClock.milliseconds(), 0)) * 1_000_000
            var metrics = OTLPMetrics(start: UInt64(max(startedAt, 0)) * 1_000_000_000, time: time)
            FleetMetrics(report: report).write(to: &metrics, &namedEntries)
            let (count, measured) = (metrics.count, namedEntries)
            completion(
                TelemetrySender.Batch(body: metrics.finished(resource), count: count) { [weak self] fate in
                    if case .taken = fate { self?.namedEntries.took(measured, at: time) }
                })
        }
    }
}
