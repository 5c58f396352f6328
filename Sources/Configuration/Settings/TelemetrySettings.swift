internal import PinproxySecurity
package import PinproxySerialization

/// A collector that gets this machine's figures and events by OTLP (`telemetry` in pinproxy.yaml).
package struct TelemetrySettings: Sendable, Equatable {
    package enum Signal: String, Sendable, CaseIterable {
        case metrics, logs
    }

    /// Without the path of a signal.
    package let collector: ServiceURL
    /// The value of Authorization.
    package let authorization: Secret?
    /// The time between two exports.
    package let interval: Duration
    /// In the order of ``Signal``.
    package let signals: [Signal]
    /// Attributes of the resource, besides those that the proxy sets.
    package let attributes: [String: String]

    package var sendsEvents: Bool { signals.contains(.logs) }

    package func url(of signal: Signal) -> ServiceURL { collector.appending("/v1/\(signal.rawValue)") }

    static let attributesLimit = 16
}
