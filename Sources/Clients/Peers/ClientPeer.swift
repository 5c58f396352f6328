import PinproxyConfiguration
package import PinproxyEventLoop
package import PinproxyLocalPeers
package import PinproxySession

/// The user and processes at the client's end, by the kernel's data. Settled once for a connection.
package struct ClientPeer: Sendable {
    enum Processes: Sendable {
        case notAsked
        /// - Parameter isComplete: all that hold the connection, not only those found cheaply.
        case found([LocalProcess], isComplete: Bool)
        /// - Parameter why: human-readable.
        case unknown(why: String)
    }

    /// Nil: unknown.
    let socket: LocalSocket?
    var userName: String?
    var processes: Processes

    package init(_ socket: LocalSocket?, why: String = "") {
        self.socket = socket
        processes = socket == nil ? .unknown(why: why) : .notAsked
    }

    /// Whether a decision by processes needs a search first.
    var needsProcesses: Bool {
        switch processes {
        case .notAsked, .found(_, isComplete: false): true
        case .found(_, isComplete: true), .unknown: false
        }
    }

    private var completeProcesses: [LocalProcess] {
        if case .found(let processes, isComplete: true) = processes { processes } else { [] }
    }

    func isAdmitted(by clients: EntryClients) -> Bool {
        clients.admits(
            user: socket?.user,
            processes: completeProcesses.map { EntryClients.Process(unit: $0.unit, executable: $0.executable) })
    }

    /// Nil: nothing is known.
    package var traits: ClientTraits? {
        guard let socket else { return nil }
        guard case .found(let processes, _) = processes, let first = processes.first else {
            return ClientTraits(user: socket.user, userName: userName)
        }
        return ClientTraits(
            user: socket.user, userName: userName, process: first.id, executable: first.executable, unit: first.unit,
            holders: processes.count)
    }

    func description(for clients: EntryClients) -> String {
        if socket == nil, case .unknown(let why) = processes { return "an unknown client (\(why))" }
        let number = socket.map { "user \($0.user)" } ?? "an unknown user"
        let user = userName.map { "\($0) (\(number))" } ?? number
        guard clients.asksForProcesses else { return user }
        switch processes {
        case .notAsked, .found([], _): return "\(user), of an unknown process"
        case .unknown(let why): return "\(user), of an unknown process (\(why))"
        case .found(let processes, _):
            let shown = processes.prefix(4).map { process in
                (process.id > 0 ? "process \(process.id): " : "")
                    + "\(process.executable ?? "an unknown program"), \(process.unit ?? "in no known unit")"
            }
            let more = processes.count > 4 ? "; and \(processes.count - 4) more" : ""
            return "\(user), " + shown.joined(separator: "; ") + more
        }
    }
}

package enum Asker: Sendable {
    case client(ClientPeer)
    /// Any client that may use an idle connection.
    case anybody
}

extension Claimant {
    package init(_ peer: ClientPeer, source: Endpoint) { self.init(user: peer.socket?.user, source: source) }
}
