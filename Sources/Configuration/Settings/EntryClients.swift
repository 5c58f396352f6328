/// The clients that may use an entry (`clients` in pins.yaml), as the kernel identifies them. Every list must match;
/// unknown never matches.
package struct EntryClients: Sendable, Equatable {
    package struct User: Sendable, Equatable {
        package let name: String
        package let number: UInt32
    }

    /// A process at the other end, as far as it is known.
    package struct Process: Sendable, Equatable {
        package let unit: String?
        package let executable: String?

        package init(unit: String?, executable: String?) {
            self.unit = unit
            self.executable = executable
        }
    }

    /// Nil: any.
    package var users: [User]?
    /// Units of the system's manager, e.g. `ci.service`. Nil: any.
    package var units: [String]?
    /// Absolute paths without symbolic links. Nil: any.
    package var executables: [String]?

    /// A user is not enough to decide.
    package var asksForProcesses: Bool { units != nil || executables != nil }

    /// - Parameters:
    ///   - user: the connection's owner; nil: unknown.
    ///   - processes: all that hold it, since any of them can send a request over it; empty: unknown.
    package func admits(user: UInt32?, processes: [Process]) -> Bool {
        func holds<Value: Equatable>(_ allowed: [Value]?, _ value: (Process) -> Value?) -> Bool {
            guard let allowed else { return true }
            return !processes.isEmpty && processes.allSatisfy { value($0).map(allowed.contains) ?? false }
        }
        let isUser = users.map { users in user.map { user in users.contains { $0.number == user } } ?? false } ?? true
        return isUser && holds(units, \.unit) && holds(executables, \.executable)
    }
}

extension EntryClients: CustomStringConvertible {
    /// `users: [build], units: [ci.service]`
    package var description: String {
        [("users", users?.map(\.name)), ("units", units), ("executables", executables)]
            .compactMap { key, list in list.map { "\(key): [\($0.joined(separator: ", "))]" } }.joined(separator: ", ")
    }
}
