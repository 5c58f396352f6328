import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyRecords
import PinproxySecurity

/// Entries that are enforced after enough evidence (`enforce_after`).
extension ProxyDaemon {
    /// Puts the entries that have seen enough into force, once that is written down. Nothing is read again for that.
    func enforceReady() {
        guard !isStopping, let leaves, let upkeep else { return }
        let ready = upkeep.writeReady()
        guard !ready.isEmpty, let fresh = snapshot.enforcing(upkeep.enforcedEntries),
            // Only its entries differ.
            let configuration = try? active(fresh, { leaves })
        else { return }
        putRenewedIntoForce(configuration)
        for (entry, record) in ready {
            logger.notice(
                "pin.enforced",
                metadata: [
                    "entry": "\(entry.pattern)", "location": "\(entry.location)",
                    "matches": .stringConvertible(record.matchesSinceMiss),
                    "days": .stringConvertible((record.matchedFor ?? 0) / 86_400),
                ])
        }
    }
}
