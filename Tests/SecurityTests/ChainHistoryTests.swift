import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

@Suite struct ChainHistoryTests {
    private let now = Chains.now

    private func verified(_ held: HeldCertificate, _ anchors: TrustAnchors) throws -> VerifiedChain {
        try anchors.verify(held.presented(), options: VerificationOptions(name: nil, time: now)).get()
    }

    /// The expectation macro can't call mutating functions.
    private func record(
        _ chain: VerifiedChain, _ pin: Pin? = nil, of host: String = "api.test", in history: inout ChainHistory,
        at time: UnixTime
    ) -> Bool { history.record(ChainHistory.links(of: chain), matching: pin, of: host, port: 443, at: time) }

    @Test func aChainIsKeptAsWhatPinsAreMadeOf() throws {
        let chains = try Chains()
        let chain = try verified(chains.leaf, chains.anchors)
        var history = ChainHistory()
        #expect(record(chain, in: &history, at: now))
        let pin = try chains.leaf.keyPin()
        #expect(record(chain, pin, in: &history, at: now + 5))
        let host = try #require(history.hosts["api.test:443"])
        #expect(host.name == "api.test")
        #expect(host.port == 443)
        let kept = try #require(host.chains.first)
        #expect(host.chains.count == 1)
        #expect((kept.count, kept.first, kept.last) == (2, now, now + 5))
        #expect(kept.matched == pin.description)
        #expect(
            try kept.links.map(\.key)
                == [chains.leaf, chains.intermediate, chains.root].map { try $0.keyPin().description })
        #expect(
            try kept.links.map(\.certificate)
                == [chains.leaf, chains.intermediate, chains.root].map { try $0.certificatePin().description })
        #expect(kept.links[0].issuer == kept.links[1].subject)
        #expect(try kept.links[0].notAfter == chains.leaf.parsed.notAfter)
    }

    @Test func theChainThatWasNotSeenForLongestMakesRoom() throws {
        let chains = try Chains()
        var history = ChainHistory()
        var first: VerifiedChain?
        for number in 0..<ChainHistory.maximumChains {
            let chain = try verified(chains.intermediate.issue(.leaf("api.test")), chains.anchors)
            if number == 0 { first = chain }
            #expect(record(chain, in: &history, at: now + Int64(number)))
        }
        #expect(record(try #require(first), in: &history, at: now + 100))
        #expect(record(try verified(chains.leaf, chains.anchors), in: &history, at: now + 101))
        let kept = try #require(history.hosts["api.test:443"]).chains
        #expect(kept.count == ChainHistory.maximumChains)
        // The second, not the first, which was seen again.
        #expect(kept.map(\.first).sorted().prefix(2) == [now, now + 2])
    }

    @Test func isBounded() throws {
        let chains = try Chains(
            leaf: .leaf("api.test").with { $0.commonName = String(repeating: "x", count: 64) })
        let chain = try verified(chains.leaf, chains.anchors)
        var history = ChainHistory()
        for number in 0..<ChainHistory.maximumHosts {
            #expect(record(chain, of: "\(number).test", in: &history, at: now))
        }
        #expect(!record(chain, of: "more.test", in: &history, at: now))
        #expect(record(chain, of: "0.test", in: &history, at: now))
        #expect(history.hosts["0.test:443"]?.chains.first?.count == 2)
        history.forget()
        #expect(record(chain, of: "more.test", in: &history, at: now))
        #expect(history.hosts.count == 1)
    }

    /// Learned values become lines of the pin file, and counting continues from the counts.
    @Test(arguments: [
        ("\"count\":1", "\"count\":9223372036854775807"), ("\"first\":1893456000", "\"first\":-9223372036854775808"),
        ("\"last\":1893456000", "\"last\":9223372036854775807"),
        ("\"key\":\"", "\"key\":\"sha256/x\\n  - match: evil.test"),
        ("\"key\":\"[^\"]*", "$0\\n"), ("\"certificate\":\"[^\"]*", "$0\\n"),
        ("\"certificate\":\"", "\"certificate\":\"x"),
    ])
    func whatCannotHaveBeenSeenIsRefused(_ pattern: String, _ replacement: String) throws {
        let chains = try Chains()
        var history = ChainHistory()
        #expect(record(try verified(chains.leaf, chains.anchors), in: &history, at: now))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        let text = String(decoding: try encoder.encode(history), as: UTF8.self)
        #expect(try JSONDecoder().decode(ChainHistory.self, from: Data(text.utf8)) == history)
        let broken = text.replacingOccurrences(of: pattern, with: replacement, options: .regularExpression)
        #expect(broken != text)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(ChainHistory.self, from: Data(broken.utf8)) }
    }
}
