/// What the last 60 minutes brought, by counters: nothing that happens often pushes out what happens once.
package struct LastHour: Codable, Sendable, Equatable {
    /// Connections that met none of an entry's pins.
    package struct Entry: Codable, Sendable, Equatable {
        /// Its pattern; `(others)` for entries that are counted together.
        package let entry: String
        /// Refused for that.
        package let missed: UInt64
        /// Let through (`enforcement: report`).
        package let reported: UInt64
    }

    static let entryLimit = 100

    package var requests: UInt64 = 0
    /// Those that the proxy answered itself.
    package var refused: UInt64 = 0
    package var pinsMissed: UInt64 = 0
    package var pinsReported: UInt64 = 0
    /// Those with failures, the most of them first; at most 100.
    package var pinFailures: [Entry] = []

    package init() {}
}
