import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

@Suite struct ApplicationProtocolTests {
    let peers: Peers

    init() throws { peers = try Peers.shared.get() }

    struct Case: Sendable {
        let offered: [String]
        /// nil: refused; "": none agreed on.
        let chosen: String?
    }

    @Test(arguments: [
        Case(offered: ["http/1.1"], chosen: "http/1.1"), Case(offered: ["h2", "http/1.1"], chosen: "http/1.1"),
        Case(offered: ["http/1.0"], chosen: "http/1.0"), Case(offered: ["http/1.0", "http/1.1"], chosen: "http/1.1"),
        Case(offered: [], chosen: ""), Case(offered: ["h2"], chosen: nil),
        Case(offered: ["http/1.1x", "ttp/1.1"], chosen: nil),
    ])
    func selection(_ example: Case) throws {
        var options = TLSClientContext.Options()
        options.applicationProtocols = example.offered
        let pair = try ConnectionPair(
            client: TLSClientContext(options: options), server: peers.serverContext, identity: peers.identity)
        let (client, server) = pair.handshake()
        guard let chosen = example.chosen else {
            #expect(client.kind == .alertReceived(120))
            #expect(server.kind == .noSharedApplicationProtocol)
            let offer = example.offered.joined(separator: ", ")
            #expect(
                server.message?.contains("offers \(offer) by ALPN") == true, "\(String(describing: server.message))")
            return
        }
        try client.get()
        #expect(pair.server.alpn ?? "" == chosen)
        #expect(pair.client.alpn ?? "" == chosen)
    }

    @Test(arguments: [[""], [String(repeating: "x", count: 256)]])
    func namesThatDontFit(_ names: [String]) {
        var options = TLSClientContext.Options()
        options.applicationProtocols = names
        #expect(throws: TLSError.self) { try TLSClientContext(options: options) }
    }
}
