import Foundation
import Testing

/// TLS session resumption, by clients with the proxy, and by the proxy with origins, the latter only under the policy
/// that verified them.
@Suite(.timeLimit(.minutes(5)))
struct ResumptionTests {
    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func aClientResumesItsSession(version: String) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            func connect(_ option: String) async throws -> Run {
                try await bed.run(
                    [
                        "openssl", "s_client", version, "-proxy", "\(shared.proxy.address):\(shared.proxy.port)",
                        "-connect", shared.authority, "-servername", OriginBed.name, "-CAfile", shared.proxy.authority,
                        "-ign_eof", option, "session.pem",
                    ],
                    input: Array("GET /echo HTTP/1.1\r\nHost: \(shared.authority)\r\nConnection: close\r\n\r\n".utf8))
            }
            let first = try await connect("-sess_out")
            #expect(first.output.contains("\nNew, "), "\(first)")
            let second = try await connect("-sess_in")
            #expect(second.output.contains("\nReused, "), "\(second)")
            #expect(second.output.contains("\"method\": \"GET\""), "\(second)")
        }
    }

    /// A ticket is only for the host that it was issued for, since it carries that host's leaf.
    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func aSessionOfOneHostIsNoneOfAnother(version: String) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, hosts: ["other.test": "127.0.0.1"])
            func connect(_ host: String, _ option: String) async throws -> Run {
                try await bed.run(
                    [
                        "openssl", "s_client", version, "-proxy", "\(shared.proxy.address):\(shared.proxy.port)",
                        "-connect",
                        "\(host):\(shared.originPort)", "-servername", host, "-CAfile", shared.proxy.authority,
                        "-ign_eof", option, "session.pem",
                    ],
                    input: Array(
                        "GET /echo HTTP/1.1\r\nHost: \(host):\(shared.originPort)\r\nConnection: close\r\n\r\n".utf8))
            }
            _ = try await connect(OriginBed.name, "-sess_out")
            let other = try await connect("other.test", "-sess_in")
            #expect(other.output.contains("\nNew, ") && !other.output.contains("\nReused, "), "\(other)")
        }
    }

    @Test func anOriginsSessionIsResumedOnlyUnderThePolicyThatVerifiedIt() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let origin = try #require(shared.origin)
            // The origin closes each of these connections, so that every request makes a new one.
            func request() async throws -> Bool {
                let before = origin.events.all("connection").count
                let run = try await shared.curl(shared.url + "/until-close/10")
                #expect(run.succeeded, "\(run)")
                let connections = origin.events.all("connection")
                #expect(connections.count == before + 1)
                return connections.last?["resumed"] == "1"
            }
            #expect(try await !request())
            #expect(try await request())
            // Another entry for the host, though it requires no more than before.
            try bed.file(
                "proxy/pins.yaml",
                "hosts:\n  - match: origin.test\n    pinning: none\n    validates_domain_name: false\n")
            try await shared.proxy.reload()
            #expect(try await !request())
            #expect(try await request())
        }
    }
}
