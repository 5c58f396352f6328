public import CoreMetrics
public import PinnedSession

extension SessionHooks {
    /// These hooks, and swift-metrics of each task that ends.
    ///
    /// | label | |
    /// |---|---|
    /// | `http.client.requests` | counter of tasks |
    /// | `http.client.request.duration` | timer, from the beginning to the end |
    /// | `http.client.request.bytes`, `http.client.response.bytes` | counters of bytes, with heads |
    /// | `http.client.connections` | counter of transactions that made a connection |
    /// | `http.client.redirects` | counter of followed redirects |
    ///
    /// The first two have the dimensions of OpenTelemetry: `http.request.method` (`_OTHER` if it isn't well known),
    /// `http.response.status_code`, and `error.type` of a failure; a mismatch of pins is `pin_mismatch`. None
    /// has a host or path, so that they stay few.
    ///
    /// - Parameters:
    ///   - factory: nil: that of `MetricsSystem`, when a task ends.
    ///   - prefix: the labels' beginning.
    public func metrics(to factory: (any MetricsFactory)? = nil, prefix: String = "http.client") -> SessionHooks {
        observing { task, metrics, error in
            count(task, metrics, error, to: factory ?? MetricsSystem.factory, prefix)
        }
    }
}

private let wellKnownMethods: Set<String> = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
]

private func count(
    _ task: SessionTask, _ metrics: TaskMetrics, _ error: SessionError?, to factory: any MetricsFactory,
    _ prefix: String
) {
    let method = "\(task.request.method)"
    var dimensions = [("http.request.method", wellKnownMethods.contains(method) ? method : "_OTHER")]
    if let status = metrics.status { dimensions.append(("http.response.status_code", "\(status)")) }
    if let error { dimensions.append(("error.type", error.kind)) }
    Counter(label: "\(prefix).requests", dimensions: dimensions, factory: factory).increment()
    let (seconds, attoseconds) = metrics.duration.components
    Timer(label: "\(prefix).request.duration", dimensions: dimensions, factory: factory)
        .recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)

    func add(_ amount: Int64, to label: String) {
        if amount > 0 { Counter(label: "\(prefix).\(label)", factory: factory).increment(by: amount) }
    }
    add(Int64(clamping: metrics.sent), to: "request.bytes")
    add(Int64(clamping: metrics.received), to: "response.bytes")
    add(Int64(metrics.transactions.count { !$0.isReused }), to: "connections")
    add(Int64(metrics.redirects), to: "redirects")
}
