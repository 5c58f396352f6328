import PinproxyTestAuthority
import Testing

/// The Python origins for HTTP/1.1 and HTTP/2, as `h1.test` and `h2.test` on separate ports.
enum HTTP2Bed {
    static let names = ["h1.test", "h2.test", "other.test"]

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await prepare(bed, pins: "hosts: []\n")
    }

    /// - Parameters:
    ///   - origin: arguments of `http2_origin.py`.
    ///   - names: more names that both origins have.
    static func prepare(
        _ bed: TestBed, pins: String = "hosts: []\n", origin arguments: [String] = [],
        sections: ProxyProcess.Sections = [:],
        roots: TestRoots? = nil, launcher: [String] = []
    ) async throws -> SharedBed {
        let roots = try roots ?? TestRoots()
        let chain = ServedChain(try roots.intermediate.issue(TestRoots.template(names)))
        let first = try await PythonPeer.origin(in: bed, name: "h1", chain: chain)
        let second = try await PythonPeer.http2Origin(in: bed, chain: chain, arguments)
        let plain = try await PythonPeer.origin(in: bed, chain: nil)
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed),
            hosts: Dictionary(uniqueKeysWithValues: (names + [OriginBed.name]).map { ($0, "127.0.0.1") }),
            sections: sections,
            launcher: launcher)
        return SharedBed(
            bed: bed, proxy: proxy, originPort: second.port, secondOriginPort: plain.port, origin: second,
            plainOrigin: plain,
            http1Origin: first, ports: ["h1.test": first.port, "h2.test": second.port, "other.test": second.port])
    }
}

extension PythonPeer {
    /// `Peers/http2_origin.py`.
    static func http2Origin(
        in bed: TestBed, name: String = "h2", chain: ServedChain, _ arguments: [String] = []
    ) async throws -> PythonPeer {
        try await PythonPeer(
            in: bed, script: "http2_origin.py",
            ["--certificate", bed.file("\(name).pem", chain.pem), "--key", bed.file("\(name).key", chain.keyPEM)]
                + arguments,
            interpreter: pythonWithPackages)
    }
}

/// The versions of HTTP on both sides of the proxy.
enum Crossing: String, CaseIterable, Sendable {
    case h2ToH1, h1ToH2, h2ToH2

    var isClientHTTP2: Bool { self != .h1ToH2 }
    var host: String { self == .h2ToH1 ? "h1.test" : "h2.test" }
    /// curl's option for the client's version.
    var option: String { isClientHTTP2 ? "--http2" : "--http1.1" }
    /// As curl prints it.
    var version: String { isClientHTTP2 ? "2" : "1.1" }
}

extension SharedBed {
    func authority(of host: String) -> String { "\(host):\(ports[host] ?? 0)" }

    func url(_ crossing: Crossing, _ path: String) -> String { "https://\(authority(of: crossing.host))\(path)" }

    /// curl as a client of that version.
    func curl(_ crossing: Crossing, _ path: String, _ arguments: String...) async throws -> Run {
        try await bed.curl(via: proxy, [crossing.option] + arguments + [url(crossing, path)])
    }

    /// The origin at the far end of a crossing.
    func origin(_ crossing: Crossing) throws -> PythonPeer {
        try #require(crossing == .h2ToH1 ? http1Origin : origin)
    }
}
