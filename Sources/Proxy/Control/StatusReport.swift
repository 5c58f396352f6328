package import Security
package import TLS

/// What `GET /status` answers and `pinproxy status` prints; of a proxy that isn't running, what it has left.
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
        package let pins: [Pin]
    }

    package let running: Bool
    package let process: Int32?
    package let stateDirectory: String
    /// The file that it reads, as an absolute path.
    package var configuration: String?
    /// Where clients are accepted.
    package var listen: [String]?
    /// Where the admin port is.
    package var admin: [String]?
    package var clients: Int?
    /// Of the machine and of each target of `reachability`.
    package var reachability: [TargetStatus]?
    /// `accepted` or `refused`.
    package var lastReload: String?
    /// Until when every host's chains are recorded, if they are.
    package var learningUntil: UnixTime?
    package let entries: [Entry]

    /// - Parameter process: nil: none is running.
    package init(process: Int32?, directory: String, history: PinHistory) {
        running = process != nil
        self.process = process
        stateDirectory = directory
        entries = history.entries.sorted { $0.key < $1.key }.map { name, record in
            Entry(
                entry: name, accepted: record.accepted, misses: record.misses, lastMiss: record.lastMiss,
                configured: record.removed == nil,
                pins: record.pins.sorted { $0.key < $1.key }.map { pin, record in
                    Pin(
                        pin: pin, matches: record.matches, first: record.first, last: record.last,
                        configured: record.removed == nil)
                })
        }
    }
}
