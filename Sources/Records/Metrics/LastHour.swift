/// The last 60 minutes by counters: frequent events don't displace rare ones.
package struct LastHour: Codable, Sendable, Equatable {
    /// Connections that met none of an entry's pins.
    package struct Entry: Codable, Sendable, Equatable {
        /// The pattern, or `(others)`.
        package let entry: String
        package let missed: UInt64
        /// Let through (`enforcement: report`).
        package let reported: UInt64
    }

    static let entryLimit = 100

    package var requests: UInt64 = 0
    /// Answered by the proxy itself.
    package var refused: UInt64 = 0
    package var pinsMissed: UInt64 = 0
    package var pinsReported: UInt64 = 0
    /// The most failures first; at most 100.
    package var pinFailures: [Entry] = []

    package init() {}
}
