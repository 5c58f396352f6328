import Foundation
import Logging
import PinproxyEventLoop
import PinproxyTLS
import PinproxyTestAuthority
import Synchronization
import Testing

@testable import PinproxyConfiguration
@testable import PinproxyRecords
@testable import PinproxySecurity
@testable import PinproxySession

/// The incidents and matched chains that are kept in files and across a restart.
@Suite final class IncidentLedgerTests {
    private let directory: String
    private let log = Recorder()
    private let authority: IncidentChains
    private let now = IncidentChains.now

    init() throws {
        directory = NSTemporaryDirectory() + "pinproxy-incidents-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        authority = try IncidentChains()
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    private func ledger() -> IncidentLedger {
        IncidentLedger(directory: directory, logger: Logger(label: "test") { [log] _ in log })
    }

    private func verdict(
        _ chain: [Certificate], pinned: Bool = true, of authority: IncidentChains? = nil
    ) throws -> Verdict {
        let authority = authority ?? self.authority
        let pins = pinned ? [Pin(.spki(chain[0].spkiSHA256), origin: "right")] : []
        let policy = SecurityPolicy(mode: pinned ? .publicKey : .none, pins: PinSet(pins))
        let presented = PresentedChain(leaf: chain[0], rest: Array(chain.dropFirst()))
        let anchors = TrustAnchors([try Certificate(der: authority.root.der)])
        return policy.evaluate(presented, host: .dns("api.test"), anchors: anchors, at: now)
    }

    @Test func incidentsAreKeptOverARestart() throws {
        let first = ledger()
        let id = first.note(try IncidentChains.sighting(try authority.chain("api.test")), at: now)
        #expect(log.events == ["incident.open"])
        #expect(first.save(at: now) == nil)
        for name in [IncidentLedger.fileName] {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
        }
        let second = ledger()
        #expect(second.incidents == first.incidents && second.incidents.open.map(\.id) == [id])
        #expect(second.acknowledge(id, by: "root", at: now)?.id == id)
        #expect(log.events == ["incident.open", "incident.acknowledged"])
        second.save(at: now)
        #expect(ledger().incidents.open.isEmpty)
    }

    /// The proxy's clock and the machine's, minutes after its start.
    private func save(_ ledger: IncidentLedger, at time: UnixTime, minute: UInt64) {
        ledger.save(at: time, MonotonicTime(nanoseconds: minute * 60_000_000_000))
    }

    @Test func whatWasntSeenForLongIsForgotten() throws {
        let first = ledger()
        let id = first.note(try IncidentChains.sighting(try authority.chain("api.test")), at: now)
        let end = now + IncidentHistory.lifetime
        for minute in 0...60 { save(first, at: end - 3600 + Int64(minute) * 60, minute: UInt64(minute)) }
        #expect(first.incidents.incidents.count == 1)
        save(first, at: end + 1, minute: 60)
        #expect(first.incidents.incidents.isEmpty && ledger().incidents.incidents.isEmpty)
        #expect(log.events == ["incident.open", "incident.forgotten"])
        #expect(log.metadata("incident.forgotten")["incidents"] == "\(id) of api.test")
    }

    @Test func theLastChainThatMatchedIsRemembered() throws {
        let ledger = ledger()
        let (one, other) = (try authority.chain("api.test"), try authority.chain("api.test"))
        ledger.accepted(try verdict(one), of: "api.test", port: 443, at: now)
        #expect(ledger.matched["api.test", 443].first?.certificates == one)
        // The same chain is not written again within a day.
        ledger.save(at: now)
        let path = "\(directory)/\(IncidentLedger.matchedFileName)"
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        unlink(path)
        ledger.accepted(try verdict(one), of: "api.test", port: 443, at: now + MatchedChains.day - 1)
        ledger.save(at: now)
        #expect(!FileManager.default.fileExists(atPath: path))
        ledger.accepted(try verdict(one), of: "api.test", port: 443, at: now + MatchedChains.day)
        ledger.save(at: now)
        #expect(FileManager.default.fileExists(atPath: path))
        #expect(ledger.matched["api.test", 443].first?.last == now + MatchedChains.day)
        ledger.accepted(try verdict(other), of: "api.test", port: 443, at: now + 1)
        #expect(ledger.matched["api.test", 443].first?.certificates == other)
        // A host without pins has nothing to compare with.
        ledger.accepted(try verdict(one, pinned: false), of: "free.test", port: 443, at: now)
        #expect(ledger.matched["free.test", 443].isEmpty)
    }

    @Test func anIncidentEndsWhenThePolicyAcceptsItsChain() throws {
        let ledger = ledger()
        let (one, other) = (try authority.chain("api.test"), try authority.chain("api.test"))
        let id = ledger.note(try IncidentChains.sighting(one), at: now)
        ledger.accepted(try verdict(other), of: "api.test", port: 443, at: now)
        #expect(ledger.incidents.open.map(\.id) == [id], "that was another chain")
        ledger.accepted(try verdict(one), of: "api.test", port: 443, at: now)
        #expect(ledger.incidents.open.isEmpty)
        // Acceptance by a policy is not an acknowledgement: a new refusal is reported.
        _ = ledger.note(try IncidentChains.sighting(one), at: now + 1)
        #expect(ledger.incidents.open.map(\.id) == [id])
        #expect(log.events.suffix(3) == ["incident.open", "incident.acknowledged", "incident.open"])
        ledger.accepted(try verdict(one), of: "api.test", port: 443, at: now + 2)
        #expect(ledger.incidents.open.isEmpty)
    }

    /// A clock set wrong for a moment ages nothing.
    @Test func aClockThatJumpsForgetsNothing() throws {
        let ledger = ledger()
        _ = ledger.note(try IncidentChains.sighting(try authority.chain("api.test")), at: now)
        for minute in 0...60 { save(ledger, at: now + Int64(minute) * 60, minute: UInt64(minute)) }
        let ahead = now + 2 * IncidentHistory.lifetime
        for minute in 61...119 { save(ledger, at: ahead + Int64(minute) * 60, minute: UInt64(minute)) }
        for minute in 120...140 { save(ledger, at: now + Int64(minute) * 60, minute: UInt64(minute)) }
        #expect(ledger.incidents.incidents.count == 1)
        // Nor does a start.
        save(self.ledger(), at: ahead, minute: 1)
        #expect(self.ledger().incidents.incidents.count == 1 && log.events == ["incident.open"])
    }

    /// The host's own acceptance doesn't explain a server that presented its chain without the key.
    @Test func aCopiedChainStaysAnIncident() throws {
        let ledger = ledger()
        let chain = try authority.chain("api.test")
        let copied = ledger.note(try IncidentChains.sighting(chain, fault: .unproven), at: now)
        let expired = ledger.note(try IncidentChains.sighting(chain, fault: .trust), at: now)
        ledger.accepted(try verdict(chain), of: "api.test", port: 443, at: now)
        #expect(ledger.incidents.open.map(\.id) == [copied])
        #expect(ledger.incidents.incidents[expired]?.acknowledged?.isByPolicy == true)
    }

    /// Servers with RSA and ECDSA certificates, or several front ends.
    @Test func severalLeavesOfAHostAreRemembered() throws {
        let ledger = ledger()
        let chains = try (0...MatchedChains.leavesPerHost).map { _ in try authority.chain("api.test") }
        for (number, chain) in chains.enumerated() {
            ledger.accepted(try verdict(chain), of: "api.test", port: 443, at: now + Int64(number))
        }
        #expect(ledger.matched["api.test", 443].map(\.certificates) == chains.dropFirst().reversed())
        // Known ones are not written again.
        ledger.save(at: now)
        unlink("\(directory)/\(IncidentLedger.matchedFileName)")
        for chain in chains.dropFirst() {
            ledger.accepted(try verdict(chain), of: "api.test", port: 443, at: now + 60)
        }
        ledger.save(at: now)
        #expect(!FileManager.default.fileExists(atPath: "\(directory)/\(IncidentLedger.matchedFileName)"))
    }

    @Test func theNearestChainIsComparedWith() throws {
        let ledger = ledger()
        let other = try IncidentChains()
        let key = try TestKey(.p256)
        let old = try authority.chain("api.test") { $0.keyPair = key }
        let latest = try other.chain("api.test")
        for (chain, authority) in [(old, authority), (latest, other)] {
            ledger.accepted(try verdict(chain, of: authority), of: "api.test", port: 443, at: now)
        }
        let renewed = try other.chain("api.test") { $0.keyPair = key }
        for (chain, nearest) in [
            (old, old), (latest, latest), (renewed, old), (try authority.chain("api.test"), old),
            (try IncidentChains().chain("api.test"), latest),
        ] {
            #expect(ledger.matched.nearest(to: chain, of: "api.test", 443)?.certificates == nearest)
        }
        #expect(ledger.matched.nearest(to: old, of: "b.test", 443) == nil)
    }

    @Test func matchedChainsAreBounded() throws {
        var chains = MatchedChains()
        for number in 0..<(MatchedChains.maximumHosts + 3) {
            chains.record(["x"], leaf: "l", pin: "p", at: "h\(number):443", time: now + Int64(number))
        }
        #expect(chains.hosts.count == MatchedChains.maximumHosts)
        #expect(chains["h2", 443].isEmpty && chains["h3", 443].count == 1)
        let large = String(repeating: "x", count: MatchedChains.maximumBytes / 4)
        for number in 0..<8 { chains.record([large], leaf: "l", pin: "p", at: "l\(number):443", time: now + 10_000) }
        #expect(chains.hosts.values.joined().reduce(0) { $0 + $1.size } <= MatchedChains.maximumBytes)
        #expect(chains["l7", 443].count == 1)
    }

    @Test(arguments: [IncidentLedger.fileName, IncidentLedger.matchedFileName], ["", "{", "[]", "{\"hosts\": 5}"])
    func aDamagedFileIsMovedAside(name: String, text: String) throws {
        let path = "\(directory)/\(name)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        let ledger = ledger()
        #expect(ledger.incidents == IncidentHistory() && ledger.matched == MatchedChains())
        #expect(log.events == ["state.broken"])
        #expect(try String(contentsOfFile: path + ".broken", encoding: .utf8) == text)
    }
}
