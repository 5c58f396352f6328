import Foundation
import PinproxyTestAuthority

/// The bed for verified tunnels: two chains for `origin.test`, and an entry that pins one of them.
struct VerifiedTunnelBed: Sendable {
    static let name = "origin.test"

    let bed: TestBed
    let roots: TestRoots
    /// The pinned certificate.
    let pinned: HeldCertificate
    /// Another certificate of the same authority, just as valid.
    let other: HeldCertificate

    init(_ bed: TestBed) async throws {
        self.bed = bed
        roots = try TestRoots()
        pinned = try roots.leaf(Self.name)
        other = try roots.leaf(Self.name)
        for (name, leaf) in [("pinned", pinned), ("other", other)] {
            try bed.file("\(name).pem", ServedChain(leaf).pem)
            try bed.file("\(name).key", leaf.keyPEM)
        }
        _ = try roots.write(to: bed)
    }

    /// `Peers/tunnel_origin.py`, with plans for the first, the second … ClientHello.
    func origin(_ plans: String...) async throws -> PythonPeer {
        try await PythonPeer(in: bed, script: "tunnel_origin.py", plans)
    }

    func entry(pin: String? = nil, more: String = "") async throws -> String {
        let ownPin = try await pinned.pin(bed)
        return """
            hosts:
              - match: \(Self.name)
                action: verify-tunnel
                pinning: public-key
                pins: [\(pin ?? ownPin)]
            \(more.isEmpty ? "" : "    \(more)\n")
            """
    }

    func proxy(
        pin: String? = nil, more: String = "", sections: ProxyProcess.Sections = [:]
    ) async throws -> ProxyProcess {
        try await ProxyProcess(
            in: bed, pins: entry(pin: pin, more: more), trust: bed.path("roots.pem"), hosts: [Self.name: "127.0.0.1"],
            sections: sections)
    }

    /// For `Peers/tunnel_client.py`: a ClientHello of more than 2,000 bytes, as post-quantum key shares make them.
    static let longOffer = [
        "--alpn", (["http/1.1"] + (10...29).map { "\($0)" + String(repeating: "x", count: 90) }).joined(separator: ","),
    ]
    /// Sent a byte at a time, or in records of 100 bytes.
    static let longHellos = [["--pieces", "1"], ["--records", "100"], ["--records", "100", "--pieces", "70"]].map {
        $0 + longOffer
    }

    /// `Peers/tunnel_client.py`: its only output line.
    func client(via proxy: ProxyProcess, to port: UInt16, _ options: [String]) async throws -> LogEvent {
        let run = try await bed.run(
            [
                PythonPeer.python, PythonPeer.path("tunnel_client.py"), "--proxy", "\(proxy.port)", "--authority",
                "\(Self.name):\(port)", "--trust", bed.path("roots.pem"),
            ] + options)
        guard let line = run.output.split(separator: "\n").last, let event = LogEvent(line: String(line)) else {
            throw TestBedError("no result: \(run)")
        }
        return event
    }

    func client(via proxy: ProxyProcess, to port: UInt16, _ options: String...) async throws -> LogEvent {
        try await client(via: proxy, to: port, options)
    }

    /// `openssl s_client` through the proxy, asking `openssl s_server -www` for its page.
    func openSSLClient(via proxy: ProxyProcess, to port: UInt16, _ options: [String]) async throws -> Run {
        try await bed.run(
            [
                "timeout", "30", "openssl", "s_client", "-proxy", "\(proxy.address):\(proxy.port)", "-connect",
                "\(Self.name):\(port)", "-servername", Self.name, "-CAfile", bed.path("roots.pem"),
                "-verify_return_error", "-alpn", "h2,http/1.1", "-ign_eof",
            ] + options, input: Array("GET / HTTP/1.0\r\n\r\n".utf8))
    }

    func openSSLClient(via proxy: ProxyProcess, to port: UInt16, _ options: String...) async throws -> Run {
        try await openSSLClient(via: proxy, to: port, options)
    }

    func openSSLServer(_ options: String...) async throws -> OpenSSLServer {
        try await OpenSSLServer(in: bed, chain: ServedChain(pinned), ["-www"] + options)
    }

    /// The same, stapling the issuer's current OCSP response for the pinned certificate.
    func stapling(_ change: (inout StatusTemplate) -> Void = { _ in }) async throws -> OpenSSLServer {
        let status = StatusTemplate().with {
            $0.thisUpdate = TestRoots.now - 60
            $0.nextUpdate = TestRoots.now + 3600
            change(&$0)
        }
        let file = try bed.file("status-\(UUID()).der", roots.intermediate.statusResponse(for: pinned, status))
        return try await openSSLServer("-status_file", file)
    }

    func curl(via proxy: ProxyProcess, to port: UInt16, _ options: String...) async throws -> Run {
        try await bed.run(
            [
                "curl", "-sS", "--http2", "--proxy", proxy.url, "--cacert", bed.path("roots.pem"),
                "https://\(Self.name):\(port)/",
            ] + options)
    }
}

extension ProxyProcess {
    /// The access log's line of the tunnel that ends next, or of the first.
    func tunnelLine() async throws -> LogEvent { try await events.first("exchange") }
}
