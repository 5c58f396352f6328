import PinproxyConfiguration
package import PinproxyTLS

/// The data that a collector has accepted, for `status`, metrics and the page.
package struct TelemetryStatus: Codable, Sendable, Equatable {
    package struct Signal: Codable, Sendable, Equatable {
        /// `metrics` or `logs`.
        package let signal: String
        /// When the collector last accepted data.
        package internal(set) var answered: UnixTime?
        /// Data points or log records that it took.
        package internal(set) var sent: UInt64 = 0
        /// Dropped ones: refused by the collector, or beyond the queue's capacity.
        package internal(set) var dropped: UInt64 = 0
        /// Failed tries since the start.
        package internal(set) var failures = 0
        /// Why the last try failed; nil: it didn't.
        package internal(set) var failure: String?

        init(_ signal: TelemetrySettings.Signal) { self.signal = signal.rawValue }
    }

    package let url: String
    package let signals: [Signal]
}
