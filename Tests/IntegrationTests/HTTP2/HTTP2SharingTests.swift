import Foundation
import PinproxyTestAuthority
import Testing

/// Which requests share a connection to an origin, and which don't.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2SharingTests {
    /// For each request for `path`, the number of the origin's connection that carried it.
    private func connections(_ shared: SharedBed, _ path: String) throws -> [String] {
        try #require(shared.origin).events.all("request").filter { $0["target"]?.hasPrefix(path) == true }.compactMap {
            $0["connection"]
        }
    }

    /// Runs `count` clients at once, each on its own connection, with all requests in flight together.
    private func crowd(_ shared: SharedBed, _ count: Int, option: String = "--http1.1") async throws -> [String] {
        let origin = try #require(shared.origin)
        // A released name is not held again.
        let name = "crowd\(count)"
        let url = shared.url(.h1ToH2, "/hold/\(name)")
        let client = try await shared.bed.start(
            [
                "curl", "-sS", option, "--parallel", "--parallel-immediate", "--parallel-max", "\(count)", "-w",
                "%{http_code}\\n",
            ]
                + Array(repeating: ["-o", "/dev/null", url], count: count).flatMap(\.self),
            environment: shared.proxy.clientEnvironment)
        _ = try await origin.events.first("held", number: count) { $0["name"] == name }
        let run = try await shared.curl(.h1ToH2, "/release/\(name)")
        #expect(run.succeeded, "\(run)")
        #expect(try await client.ending() == .exited(0))
        let codes = await client.output.complete
        #expect(codes == Array(repeating: "200", count: count))
        return try connections(shared, "/hold/")
    }

    @Test func manyClientsShareFewConnections() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            // Each worker now knows which protocol the origin chooses.
            _ = try await crowd(shared, 8)
            let before = try #require(shared.origin).events.all("connection").count
            let used = try await crowd(shared, 200).dropFirst(8)
            let made = try #require(shared.origin).events.all("connection").count - before
            #expect(made <= 2 && Set(used).count <= 8, "\(made) connections more, \(Set(used).count) used")
        }
    }

    /// When all streams of a connection are in use, other requests get a new one.
    @Test(arguments: ["--http1.1", "--http2"]) func beyondMaxConcurrentStreamsThereIsAnotherConnection(
        option: String
    ) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, origin: ["--streams", "4"], sections: ["proxy": ["workers: 1"]])
            _ = try await crowd(shared, 1)
            let used = try await crowd(shared, 21, option: option).dropFirst()
            let counts = Dictionary(grouping: used) { $0 }.mapValues(\.count)
            #expect(counts.values.allSatisfy { $0 <= 4 } && counts.count >= 6, "\(counts)")
            #expect(try #require(shared.origin).events.all("fault").isEmpty)
        }
    }

    /// Connections opened for a peak serve later requests.
    @Test func oneStreamAtATimeServesEverybody() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, origin: ["--streams", "1"], sections: ["proxy": ["workers: 1"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            var streams: [Int] = []
            for _ in 0..<10 { streams.append(try await client.request()) }
            for stream in streams { #expect(try await client.head(stream).status == 200) }
            let made = try #require(shared.origin).events.all("connection").count
            for _ in 0..<10 { #expect(try await client.get("/echo").head.status == 200) }
            #expect(try #require(shared.origin).events.all("connection").count == made)
        }
    }

    /// One certificate names both, and one server serves both.
    @Test func twoAuthoritiesNeverShareAConnection() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let program = try await HTTP2Client.program(in: shared)
            let hosts = ["h2.test", "other.test"]
            let clients = try hosts.map { try HTTP2Client(of: program, authority: shared.authority(of: $0)) }
            for client in clients { #expect(try await client.connect().protocol == "h2") }
            for _ in 0..<3 {
                for client in clients { #expect(try await client.get("/echo").head.status == 200) }
            }
            let requests = try #require(shared.origin).events.all("request")
            #expect(requests.count == 6)
            let byConnection = Dictionary(grouping: requests) { $0["connection"] }.mapValues {
                Set($0.compactMap { $0["authority"] })
            }
            #expect(byConnection.values.allSatisfy { $0.count == 1 }, "\(byConnection)")
            // Each was made for its name.
            let names = Set(try #require(shared.origin).events.all("connection").compactMap { $0["name"] })
            #expect(names == Set(hosts))
        }
    }

    /// One client's requests don't wait for each other: each has a stream.
    @Test func requestsOfOneClientOvertakeEachOther() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let held = try await client.request("GET", "/hold/first")
            #expect(try await client.head(held).status == 200)
            #expect(try await client.get("/echo").head.status == 200)
            #expect(try await client.body(held, atLeast: 6).text == "first,")
            #expect(try await client.get("/release/first").head.status == 200)
            #expect(try await client.body(held).text == "first,second")
        }
    }
}
