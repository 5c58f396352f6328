import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyRecords
@testable import PinproxySession

/// How incidents are counted, limited and closed.
@Suite struct IncidentHistoryTests {
    private let authority: IncidentChains
    private let now = IncidentChains.now

    init() throws { authority = try IncidentChains() }

    @Test func oneChainOfOneHostIsOneIncident() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        let first = history.record(try IncidentChains.sighting(chain), at: now)
        #expect(first.news == .opened && first.id.count == 20)
        #expect(history.record(try IncidentChains.sighting(chain), at: now + 60).news == nil)
        #expect(history.record(try IncidentChains.sighting(chain, isReported: true), at: now + 90).news == nil)
        let incident = try #require(history.incidents[first.id])
        #expect(incident.refused == 2 && incident.reported == 1 && !incident.isOnlyReported)
        #expect(incident.first == now && incident.last == now + 90)
        #expect(incident.certificates == chain)
        #expect(incident.addresses.map(\.address) == ["192.0.2.1:443"] && incident.addresses[0].count == 3)
        #expect(incident.addresses[0].resolver == "hosts file")
        #expect(incident.askers.map(\.program) == ["/usr/bin/curl"] && incident.askers[0].user == "build")
        #expect(incident.tlsVersion == "TLS 1.3" && incident.cipher == "TLS_AES_128_GCM_SHA256")
        // The same chain from another host, and another chain.
        #expect(history.record(try IncidentChains.sighting(chain, of: "b.test"), at: now).news == .opened)
        #expect(history.record(try IncidentChains.sighting(try authority.chain("api.test")), at: now).news == .opened)
        #expect(history.incidents.count == 3)
    }

    @Test func reportsAloneAreMarked() throws {
        var history = IncidentHistory()
        let outcome = history.record(
            try IncidentChains.sighting(try authority.chain("api.test"), isReported: true), at: now)
        #expect(history.incidents[outcome.id]?.isOnlyReported == true)
    }

    @Test func anAcknowledgedIncidentOpensAgainAtAnotherAddress() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        let id = history.record(try IncidentChains.sighting(chain), at: now).id
        #expect(history.acknowledge(id, by: "root", at: now)?.acknowledged?.by == "root")
        #expect(history.acknowledge(id, by: "root", at: now) == nil, "it is over already")
        #expect(history.open.isEmpty)
        #expect(history.record(try IncidentChains.sighting(chain), at: now + 1).news == nil)
        #expect(history.open.isEmpty, "the same address is known")
        let elsewhere = try IncidentChains.sighting(chain, address: "192.0.2.2")
        #expect(history.record(elsewhere, at: now + 2).news == .reopened)
        #expect(history.open.map(\.id) == [id])
    }

    /// `enforcement: report` became `enforce`: programs fail that didn't before.
    @Test func whatWasOnlyReportedAndIsRefusedOpensAgain() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        let reported = try IncidentChains.sighting(chain, isReported: true)
        let id = history.record(reported, at: now).id
        _ = history.acknowledge(id, by: "root", at: now)
        #expect(history.record(reported, at: now).news == nil && history.open.isEmpty)
        #expect(history.record(try IncidentChains.sighting(chain), at: now).news == .enforced)
        #expect(history.open.map(\.id) == [id])
        // Reported even if it was already open.
        _ = history.record(try IncidentChains.sighting(chain, of: "b.test", isReported: true), at: now)
        #expect(history.record(try IncidentChains.sighting(chain, of: "b.test"), at: now).news == .enforced)
        #expect(history.record(try IncidentChains.sighting(chain, of: "b.test"), at: now).news == nil)
    }

    @Test func aChainRefusedForAnotherCauseIsAnotherIncident() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        let pin = history.record(try IncidentChains.sighting(chain), at: now)
        let trust = history.record(try IncidentChains.sighting(chain, fault: .trust), at: now)
        let copied = history.record(try IncidentChains.sighting(chain, fault: .unproven), at: now)
        #expect(Set([pin.id, trust.id, copied.id]).count == 3 && trust.news == .opened && copied.news == .opened)
        #expect(history.incidents[trust.id]?.unproven == false)
        let incident = try #require(history.incidents[copied.id])
        #expect(incident.unproven && incident.kind == .trust)
    }

    /// A host with more addresses than the list holds: the first further one reopens the incident, later ones don't.
    @Test func anAcknowledgementHoldsForAllFurtherAddresses() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        func see(_ number: Int) throws -> IncidentHistory.Outcome {
            history.record(try IncidentChains.sighting(chain, address: "192.0.2.\(number)"), at: now)
        }
        var id = ""
        for number in 1...Incident.longestList { id = try see(number).id }
        _ = history.acknowledge(id, by: "root", at: now)
        #expect(try see(17).news == .reopened)
        _ = history.acknowledge(id, by: "root", at: now)
        for number in [17, 18, 3, 17] { #expect(try see(number).news == nil, "\(number)") }
        #expect(history.open.isEmpty)
    }

    /// A chain that starts or stops verifying.
    @Test func theChainIsTheOneThatWasJudgedLast() throws {
        let chain = try authority.chain("api.test")
        let verified = try authority.verified(chain)
        var history = IncidentHistory()
        let evidence = PeerEvidence(ocspResponse: [1, 2, 3], timestamps: [[1]])
        let id = history.record(try IncidentChains.sighting([chain[0]]), at: now).id
        #expect(history.incidents[id]?.certificates == [chain[0]])
        _ = history.record(
            try IncidentChains.sighting([chain[0]], verified: verified, evidence: evidence), at: now + 1)
        var incident = try #require(history.incidents[id])
        #expect(incident.verified && incident.certificates == chain && incident.ocspResponse == "AQID")
        _ = history.record(try IncidentChains.sighting([chain[0]]), at: now + 2)
        incident = try #require(history.incidents[id])
        #expect(!incident.verified && incident.certificates == [chain[0]] && incident.ocspResponse == nil)
    }

    @Test func listsOfAddressesAndAskersAreBounded() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        var id = ""
        for number in 1...(Incident.longestList + 3) {
            id =
                history.record(
                    try IncidentChains.sighting(
                        chain, address: "192.0.2.\(number)", user: UInt32(number), program: "/bin/\(number)"), at: now
                ).id
        }
        let incident = try #require(history.incidents[id])
        #expect(incident.addresses.count == Incident.longestList && incident.furtherAddresses == 3)
        #expect(incident.askers.count == Incident.longestList && incident.furtherAskers == 3)
        #expect(incident.refused == Incident.longestList + 3)
    }

    /// A hostile origin presents another chain on each connection.
    @Test func aHostsFurtherChainsShareAnIncident() throws {
        var history = IncidentHistory()
        for number in 1...IncidentHistory.chainsPerHost {
            #expect(
                history.record(try IncidentChains.sighting(try authority.chain("api.test")), at: now).news == .opened,
                "\(number)")
        }
        let merged = history.record(try IncidentChains.sighting(try authority.chain("api.test")), at: now)
        #expect(merged.news == .merged && history.incidents[merged.id]?.merged == true)
        let last = try authority.chain("api.test")
        for _ in 1...20 {
            #expect(history.record(try IncidentChains.sighting(last), at: now).id == merged.id)
        }
        #expect(history.incidents.count == IncidentHistory.chainsPerHost + 1)
        // Once acknowledged, the incident reopens for another chain, but not for the last one.
        _ = history.acknowledge(merged.id, by: "root", at: now)
        #expect(history.record(try IncidentChains.sighting(last), at: now).news == nil)
        #expect(
            history.record(try IncidentChains.sighting(try authority.chain("api.test")), at: now).news == .reopened)
        // Another host has its own limit.
        #expect(
            history.record(try IncidentChains.sighting(last, of: "b.test"), at: now).news == .opened)
    }

    @Test func theLeastRecentMakesRoomFirstOfHostsWithoutPins() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        let pinned = history.record(try IncidentChains.sighting(chain, of: "old.test"), at: now - 100).id
        for number in 1..<IncidentHistory.maximumIncidents {
            let outcome = history.record(
                try IncidentChains.sighting(chain, of: "h\(number).test", pins: []), at: now + Int64(number))
            #expect(outcome.evicted == 0, "\(number)")
        }
        #expect(history.incidents.count == IncidentHistory.maximumIncidents)
        let more = history.record(try IncidentChains.sighting(chain, of: "more.test", pins: []), at: now + 1000)
        #expect(more.evicted == 1 && history.incidents.count == IncidentHistory.maximumIncidents)
        #expect(history.incidents[pinned] != nil, "it has pins")
        #expect(!history.incidents.values.contains { $0.host == "h1.test" } && history.incidents[more.id] != nil)
    }

    /// The number of open incidents is kept beside them, whatever happens to them.
    @Test func theNumberOfOpenOnesIsRight() throws {
        var history = IncidentHistory()
        let chains = try (0..<4).map { _ in try authority.chain("api.test") }
        var ids: [String] = []
        for step in 0..<600 {
            let chain = chains[step % 4]
            let host = "h\((step * 7) % 300).test"
            ids.append(history.record(try IncidentChains.sighting(chain, of: host), at: now + Int64(step)).id)
            if step % 3 == 0 { _ = history.acknowledge(ids[step / 2], by: "root", isByPolicy: step % 2 == 0, at: now) }
            if step == 400 { #expect(history.settle(at: now + IncidentHistory.lifetime + 300).isEmpty == false) }
            #expect(history.openCount == history.open.count, "\(step)")
        }
        let read = try JSONDecoder().decode(IncidentHistory.self, from: JSONEncoder().encode(history))
        #expect(read == history && read.openCount == history.open.count)
    }

    /// Written by a wrong clock, or by another program.
    @Test func datesOfTheFutureBecomeThePresent() throws {
        let far: Int64 = 1 << 40
        var history = try JSONDecoder().decode(
            IncidentHistory.self,
            from: try file {
                ($0["first"], $0["last"]) = (far, far)
                $0["addresses"] = [["address": "x", "count": 1, "last": far] as [String: Any]]
            })
        #expect(history.isUnsettled(at: now) && history.settle(at: now).isEmpty)
        let incident = try #require(history.list.first)
        #expect(incident.first == now && incident.last == now && incident.addresses[0].last == now)
        #expect(!history.isUnsettled(at: now + IncidentHistory.lifetime))
        #expect(history.settle(at: now + IncidentHistory.lifetime + 1).map(\.id) == [incident.id])
        #expect(history.incidents.isEmpty)
    }

    @Test func acknowledgedOnesMakeRoomFirst() throws {
        let chain = try authority.chain("api.test")
        var history = IncidentHistory()
        for number in 1...IncidentHistory.maximumIncidents {
            let pins = number == 200 ? ["sha256/x"] : []
            _ = history.record(
                try IncidentChains.sighting(chain, of: "h\(number).test", pins: pins), at: now + Int64(number))
        }
        func isKnown(_ host: String) -> Bool { history.incidents.values.contains { $0.host == host } }
        for host in ["h200.test", "h100.test"] {
            let id = try #require(history.incidents.values.first { $0.host == host }?.id)
            _ = history.acknowledge(id, by: "root", at: now)
        }
        for (number, gone) in ["h100.test", "h200.test", "h1.test"].enumerated() {
            #expect(isKnown(gone), "\(gone)")
            let more = try IncidentChains.sighting(chain, of: "more\(number).test", pins: [])
            #expect(history.record(more, at: now + 1000).evicted == 1)
            #expect(!isKnown(gone), "\(gone)")
        }
    }

    @Test func allTogetherHaveABudget() throws {
        // A certificate of some 40 KiB.
        let names = (0..<1500).map { "n\($0)-\(String(repeating: "x", count: 12)).api.test" }
        let chain = try authority.chain("api.test") { $0.dnsNames += names }
        let one = try IncidentChains.sighting(chain).incident("0", isMerged: false, at: now)
        let fits = IncidentHistory.maximumBytes / (one.size + 512)
        try #require(fits < IncidentHistory.maximumIncidents)
        var history = IncidentHistory()
        var evicted = 0
        for number in 0..<(fits + 20) {
            evicted += history.record(try IncidentChains.sighting(chain, of: "h\(number).test"), at: now).evicted
            #expect(history.incidents.values.reduce(0) { $0 + $1.size } <= IncidentHistory.maximumBytes)
        }
        #expect(evicted > 0 && history.incidents.count >= fits)
    }

    @Test func evidenceIsKeptWithinItsBounds() throws {
        let chain = try authority.chain("api.test")
        let evidence = PeerEvidence(
            ocspResponse: [1, 2, 3], timestamps: [[1], Array(repeating: 0, count: 2000)])
        let sighting = try IncidentChains.sighting(chain, evidence: evidence)
        let incident = sighting.incident("0", isMerged: false, at: now)
        #expect(incident.ocspResponse == "AQID" && incident.timestamps == ["AQ=="])
        let large = PeerEvidence(ocspResponse: Array(repeating: 0, count: Incident.longestEvidence + 1))
        #expect(
            try IncidentChains.sighting(chain, evidence: large).incident("0", isMerged: false, at: now).ocspResponse
                == nil)
        let long = try IncidentChains.sighting(Array(repeating: chain[0], count: 14))
            .incident("0", isMerged: false, at: now)
        #expect(long.chain.count == 10 && long.omitted == 4)
    }

    /// Longer than the whole chain may be: the leaf is what matters.
    @Test func aLongLeafIsKeptWhole() throws {
        let names = (0..<4000).map { "n\($0)-\(String(repeating: "x", count: 24)).api.test" }
        let chain = try authority.chain("api.test") { $0.dnsNames += names }
        try #require(chain[0].pem.utf8.count > Incident.longestChain)
        let incident = try IncidentChains.sighting(chain).incident("0", isMerged: false, at: now)
        #expect(incident.certificates == [chain[0]] && incident.omitted == 1)
    }

    @Test func idsMayBeShortened() throws {
        var history = IncidentHistory()
        let id = history.record(try IncidentChains.sighting(try authority.chain("api.test")), at: now).id
        #expect(try history.find(String(id.prefix(4))).id == id)
        #expect(try history.find(id).id == id)
        for text in ["", "abc", "ABCD", "../../etc", String(repeating: "0", count: 21), "abcg"] {
            #expect(throws: IncidentQuestion.malformed, "\(text)") { try history.find(text) }
        }
        let other = String(id.reversed())
        if other != id { #expect(throws: IncidentQuestion.none(other)) { try history.find(other) } }
    }

    // MARK: The file

    private func file(named key: String? = nil, _ change: (inout [String: Any]) -> Void) throws -> Data {
        var history = IncidentHistory()
        _ = history.record(try IncidentChains.sighting(try authority.chain("api.test")), at: now)
        var json = try #require(
            try JSONSerialization.jsonObject(with: JSONEncoder().encode(history)) as? [String: Any])
        var incidents = try #require(json["incidents"] as? [String: [String: Any]])
        let id = try #require(incidents.keys.first)
        change(&incidents[id]!)
        if let key { incidents[key] = incidents.removeValue(forKey: id) }
        json["incidents"] = incidents
        return try JSONSerialization.data(withJSONObject: json)
    }

    @Test func aDamagedFileIsNotTaken() throws {
        _ = try JSONDecoder().decode(IncidentHistory.self, from: try file { _ in })
        let damages: [(inout [String: Any]) -> Void] = [
            { $0["refused"] = Int.max }, { $0["reported"] = -1 }, { $0["first"] = Int64.max },
            { $0["id"] = "00000000000000000000" }, { $0["chain"] = 5 }, { $0["host"] = nil },
            { $0["addresses"] = [["address": "x", "count": Int.max, "last": 0]] },
            { $0["chain"] = Array(repeating: "x", count: 11) },
        ]
        for (number, damage) in damages.enumerated() {
            #expect(throws: DecodingError.self, "\(number)") {
                try JSONDecoder().decode(IncidentHistory.self, from: try file(damage))
            }
        }
        for id in ["", "zz", "0000000000000000000g", "000000000000000000000", "../incidents", "0000000000000000000A"] {
            #expect(throws: DecodingError.self, "\(id)") {
                try JSONDecoder().decode(IncidentHistory.self, from: try file(named: id) { $0["id"] = id })
            }
        }
        // An unreadable chain counts as empty.
        let broken = try JSONDecoder().decode(IncidentHistory.self, from: try file { $0["chain"] = ["not PEM"] })
        #expect(broken.list.first?.certificates.isEmpty == true)
    }

    /// Every prefix of a file is refused without trapping.
    @Test func aTruncatedFileIsRefused() throws {
        let whole = try file { _ in }
        for length in 0..<whole.count {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(IncidentHistory.self, from: whole.prefix(length))
            }
        }
    }
}
