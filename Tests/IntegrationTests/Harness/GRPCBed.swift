import Foundation
import PinproxyTestAuthority

/// A gRPC server as `grpc.test`, with another name that has a wrong pin.
enum GRPCBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let leaf = try roots.leaf("grpc.test", "wrong.test", "ruled.test")
        let chain = ServedChain(leaf)
        let origin = try await PythonPeer(
            in: bed, script: "grpc_origin.py",
            ["--certificate", bed.file("grpc.pem", chain.pem), "--key", bed.file("grpc.key", chain.keyPEM)],
            interpreter: PythonPeer.pythonWithPackages)
        let plain = try await PythonPeer.origin(in: bed, chain: nil)
        let pins = """
            hosts:
              - match: grpc.test
                pinning: public-key
                pins: [\(try await leaf.pin(bed))]
              - match: wrong.test
                pinning: public-key
                pins: [\(String.wrongPin)]
              - match: ruled.test
                rules:
                  - {path: /test.Calls/Unary, response: {status: [201]}}

            """
        let names = ["grpc.test", "wrong.test", "ruled.test", "closed.test", OriginBed.name]
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed),
            hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, "127.0.0.1") }))
        return SharedBed(
            bed: bed, proxy: proxy, originPort: origin.port, secondOriginPort: plain.port, origin: origin,
            plainOrigin: plain)
    }
}

/// What a program saw of a call.
struct GRPCOutcome: Decodable, Sendable {
    let event: String
    let status: String
    var details: String?
    var equal: Bool?
    var text: String?
    var metadata: [[String]]?
}

extension SharedBed {
    /// `Peers/grpc_client.py`, with the environment that programs have.
    func grpc(_ host: String, port: UInt16? = nil, _ cases: String...) async throws -> [GRPCOutcome] {
        let run = try await bed.run(
            [PythonPeer.pythonWithPackages, PythonPeer.path("grpc_client.py"), "\(host):\(port ?? originPort)"] + cases,
            environment: ["https_proxy": proxy.url, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": proxy.authority])
        let outcomes = run.output.split(separator: "\n").compactMap {
            try? JSONDecoder().decode(GRPCOutcome.self, from: Data($0.utf8))
        }
        guard run.succeeded, outcomes.map(\.event) == cases else { throw TestBedError("\(run)") }
        return outcomes
    }
}
