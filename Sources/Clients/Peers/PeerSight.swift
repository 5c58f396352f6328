package import PinproxyConfiguration
import PinproxyLocalPeers
import PinproxySecurity

/// The information about clients that this process can get.
package struct PeerSight {
    let sight: Sight
    /// User IDs are the machine's.
    let knowsUsers: Bool

    package static var current: PeerSight { PeerSight(sight: .current, knowsUsers: UserNamespace.isInitial) }

    /// A warning for each entry with `clients` that this process can't identify.
    package func warnings(about snapshot: Snapshot) -> [Problem] {
        snapshot.hosts.values.compactMap { entry in
            guard let clients = entry.clients, let cause = cause(clients) else { return nil }
            return Problem(.warning, at: entry.place, "clients: \(cause)")
        }
    }

    private func cause(_ clients: EntryClients) -> String? {
        if clients.users != nil, !knowsUsers {
            return
                "in this user namespace the proxy can't tell other users apart, so that only its own user and root can "
                + "use the entry; let it run with PrivateUsers=no"
        }
        guard clients.asksForProcesses, case .own(let user) = sight else { return nil }
        return
            "units and executables of other users' processes are hidden from the proxy (user \(user)), so that only "
            + "clients of that user can use the entry; give it CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH "
            + "(docs/identity.md has the drop-in), or ask for users alone"
    }
}
