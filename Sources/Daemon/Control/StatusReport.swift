package import PinproxyReachability
package import PinproxyRecords
package import PinproxySecurity
package import PinproxyTLS

/// For `GET /status` and `pinproxy status`; of a stopped proxy, from its files.
package struct StatusReport: Codable, Sendable, Equatable {
    package struct Pin: Codable, Sendable, Equatable {
        package let pin: String
        package let matches: Int
        package let first: UnixTime?
        package let last: UnixTime?
        package let configured: Bool
    }

    package struct Entry: Codable, Sendable, Equatable {
        package let entry: String
        package let accepted: Int
        package let misses: Int
        package let lastMiss: UnixTime?
        package let configured: Bool
        /// When, where or after what its pins are enforced; nil: as it says itself.
        package let rollout: String?
        package let pins: [Pin]
    }

    package struct Ending: Codable, Sendable, Equatable {
        /// `pin`, `entry`, `client certificate`, `revocation list`; of the proxy's own: `authority`, `next authority`,
        /// `admin certificate`, `proxy certificate`.
        package let what: String
        package let entry: String?
        package let name: String?
        /// `FILE:LINE`
        package let location: String
        package let date: UnixTime
        /// Negative once it is past.
        package let daysLeft: Int64
    }

    static let expiringLimit = 100
    static let recentLimit = 100

    package let running: Bool
    package let process: Int32?
    package let stateDirectory: String
    package var version: String?
    /// Files of the program or its libraries that were replaced since the start.
    package var replacedLibraries: [String]?
    package var since: UnixTime?
    /// When the configuration was read, and how many were in force since the start.
    package var readAt: UnixTime?
    package var generation: Int?
    /// The configuration file's absolute path.
    package var configuration: String?
    /// Files of the configuration that have changed since it read them. For `pinproxy status`, which looks for them
    /// itself.
    package var changedFiles: [String]?
    /// Why the start has refused the configuration files.
    package var fallback: String?
    /// The policy's SHA-256 in hexadecimal: of pinproxy.yaml and all pin files, the bundle's included.
    package var digest: String?
    package var policy: PolicyStatus?
    /// The data that the collector has accepted; nil: none is named.
    package var telemetry: TelemetryStatus?
    package var listen: [String]?
    package var admin: [String]?
    package var clients: Int?
    package var clientLimit: Int?
    package var tasks: Int?
    /// Exchanges since the start, and those refused.
    package var requests: UInt64?
    package var refused: UInt64?
    package var lastHour: LastHour?
    /// Bytes of kept bodies, their limit, and the number of bodies refused since the start.
    package var keptBodies: Int?
    package var keptBodiesLimit: Int?
    package var bodiesNotKept: Int?
    package var cache: CacheCounts?
    /// Recent failures, the latest first. Pin failures are kept longest.
    package var recent: [RecentEvent]?
    /// Open ones, the latest first, and how many there are.
    package var incidents: [OpenIncident]?
    package var openIncidents: Int?
    /// Ended or ending within 30 days, the most urgent first.
    package var expiring: [Ending]?
    /// Settings that remove protection.
    package var insecure: [String]?
    package var warnings: [String]?
    /// Workers that did not answer in time: their last counts are used.
    package var silentWorkers: [String]?
    /// Exchanges of the last 60 minutes, the oldest first: by entry, and in all.
    package var hits: [String: [UInt64]]?
    package var requestsByMinute: [UInt64]?
    package var refusalsByMinute: [UInt64]?
    /// The latest first.
    package var networkChanges: [NetworkChange]?
    /// The status of the machine and of each target of `reachability`.
    package var reachability: [TargetStatus]?
    /// `accepted` or `refused`.
    package var lastReload: String?
    /// While every host's chains are recorded.
    package var learningUntil: UnixTime?
    package let entries: [Entry]

    /// - Parameters:
    ///   - process: nil: not running.
    ///   - rollouts: of entries in force, by their patterns.
    package init(
        process: Int32?, directory: String, history: PinHistory, rollouts: [String: PinRollout] = [:],
        at time: UnixTime = 0
    ) {
        running = process != nil
        self.process = process
        stateDirectory = directory
        entries = history.entries.sorted { $0.key < $1.key }.map { name, record in
            Entry(
                entry: name, accepted: record.accepted, misses: record.misses, lastMiss: record.lastMiss,
                configured: record.removed == nil, rollout: rollouts[name]?.text(at: time, counted: record),
                pins: record.pins.sorted { $0.key < $1.key }.map { pin, record in
                    Pin(
                        pin: pin, matches: record.matches, first: record.first, last: record.last,
                        configured: record.removed == nil)
                })
        }
    }
}

package struct TargetStatus: Codable, Sendable, Equatable {
    /// `any`, an address or a name.
    package let target: String
    /// As in the log: `via-wired`, `not-reachable`, `unknown`, …
    package let status: String
    package let reason: String?
    /// The interface's name and kind.
    package let link: String?
    package let kind: String?

    package init(_ target: ReachabilityTarget, _ status: ReachabilityStatus) {
        self.target = "\(target)"
        self.status = "\(status)"
        reason = status.reason.isEmpty ? nil : status.reason
        link = status.path?.link.name
        kind = status.path?.link.kind.rawValue
    }

    /// `via-wired (eth0, route via 192.0.2.1 from 192.0.2.7)`
    package var text: String {
        let details = [link, reason].compactMap(\.self)
        return details.isEmpty ? status : "\(status) (\(details.joined(separator: ", ")))"
    }
}

package struct NetworkChange: Codable, Sendable, Equatable {
    /// Milliseconds since 1970.
    package let time: Int64
    package let target: String
    package let from: String
    package let to: String
    package let reason: String
}

/// The answer of `POST /reload`.
package struct ReloadReport: Codable, Sendable, Equatable {
    package let process: Int32
    /// The file's absolute path.
    package let configuration: String
    /// Why the old configuration stays in force, one problem a line; nil: it doesn't.
    package let cause: String?
}
