import Foundation
import Logging
import Synchronization
import TLS
import TestAuthority
import Testing

@testable import Configuration
@testable import Records
@testable import Security
@testable import Session

/// What is kept of incidents and of chains that matched, in files and over a restart.
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

    private func verdict(_ chain: [Certificate], pinned: Bool = true) throws -> Verdict {
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

    @Test func whatWasntSeenForLongIsForgotten() throws {
        let first = ledger()
        _ = first.note(try IncidentChains.sighting(try authority.chain("api.test")), at: now)
        first.save(at: now + IncidentHistory.lifetime)
        #expect(first.incidents.incidents.count == 1)
        first.save(at: now + IncidentHistory.lifetime + 1)
        #expect(first.incidents.incidents.isEmpty && ledger().incidents.incidents.isEmpty)
    }

    @Test func theLastChainThatMatchedIsRemembered() throws {
        let ledger = ledger()
        let (one, other) = (try authority.chain("api.test"), try authority.chain("api.test"))
        ledger.accepted(try verdict(one), of: "api.test", port: 443, at: now)
        #expect(ledger.matched["api.test", 443]?.certificates == one)
        // Nothing is written again for the same chain within a day.
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
        #expect(ledger.matched["api.test", 443]?.last == now + MatchedChains.day)
        ledger.accepted(try verdict(other), of: "api.test", port: 443, at: now + 1)
        #expect(ledger.matched["api.test", 443]?.certificates == other)
        // A host without pins has nothing to compare with.
        ledger.accepted(try verdict(one, pinned: false), of: "free.test", port: 443, at: now)
        #expect(ledger.matched["free.test", 443] == nil)
    }

    @Test func anIncidentEndsWhenThePolicyAcceptsItsChain() throws {
        let ledger = ledger()
        let (one, other) = (try authority.chain("api.test"), try authority.chain("api.test"))
        let id = ledger.note(try IncidentChains.sighting(one), at: now)
        ledger.accepted(try verdict(other), of: "api.test", port: 443, at: now)
        #expect(ledger.incidents.open.map(\.id) == [id], "that was another chain")
        ledger.accepted(try verdict(one), of: "api.test", port: 443, at: now)
        #expect(ledger.incidents.open.isEmpty)
    }

    @Test func matchedChainsAreBounded() throws {
        var chains = MatchedChains()
        for number in 0..<(MatchedChains.maximumHosts + 3) {
            chains.record(["x"], pin: "p", at: "h\(number):443", time: now + Int64(number))
        }
        #expect(chains.hosts.count == MatchedChains.maximumHosts)
        #expect(chains["h2", 443] == nil && chains["h3", 443] != nil)
        let large = String(repeating: "x", count: MatchedChains.maximumBytes / 4)
        for number in 0..<8 { chains.record([large], pin: "p", at: "l\(number):443", time: now + 10_000) }
        #expect(chains.hosts.values.reduce(0) { $0 + $1.size } <= MatchedChains.maximumBytes)
        #expect(chains["l7", 443] != nil)
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
