import Testing

/// A request that finds its pooled connection closed is retried once, on a new connection. However broken an origin is,
/// requests don't hammer it.
@Suite(.timeLimit(.minutes(5)))
struct RetryTests {
    /// An origin and a proxy, with `idle` connections between them in the pool of its only worker.
    private func prepare(_ bed: TestBed, idle: Int) async throws -> (SharedBed, PythonPeer) {
        let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
        let origin = try #require(shared.plainOrigin)
        // All at once: each connection serves one request.
        let clients = try (0..<idle).map { _ in try RawConnection(to: shared.proxy) }
        for client in clients { try await client.send(request("/hold/all", of: shared)) }
        guard idle > 0 else { return (shared, origin) }
        try await eventually("all to be held") { origin.events.all("held").count == idle }
        #expect(try await shared.curl(shared.plainURL + "/release/all", "-H", "Connection: close").succeeded)
        for client in clients { #expect(try await client.response().body == "first,second") }
        return (shared, origin)
    }

    private func request(_ path: String, of shared: SharedBed, method: String = "GET") -> String {
        "\(method) \(shared.plainURL)\(path) HTTP/1.1\r\nHost: origin.test:\(shared.secondOriginPort)\r\n\r\n"
    }

    /// The status of a request for `/die`, how often the origin got it, and whether it last came on a new connection.
    private func deaths(idle: Int, method: String) async throws -> (status: Int, count: Int, wasNew: Bool) {
        try await withTestBed { bed in
            let (shared, origin) = try await prepare(bed, idle: idle)
            let known = Set(origin.events.all("connection").compactMap { $0["connection"] })
            let client = try RawConnection(to: shared.proxy)
            try await client.send(request("/die", of: shared, method: method))
            let status = try await client.response().status
            // The origin's log may lag behind the client, but is in order.
            #expect(try await shared.curl(shared.plainURL + "/last").succeeded)
            _ = try await origin.events.first("request") { $0["target"] == "/last" }
            let deaths = origin.events.all("died")
            return (status, deaths.count, deaths.last?["connection"].map { !known.contains($0) } == true)
        }
    }

    @Test func sendsARequestAtMostTwiceHoweverManyConnectionsAreIdle() async throws {
        let (status, count, wasNew) = try await deaths(idle: 4, method: "GET")
        #expect(status == 502)
        #expect(count == 2)
        #expect(wasNew, "the idle connections may all be as dead as the first")
    }

    @Test func onANewConnectionItIsSentOnce() async throws {
        let (status, count, _) = try await deaths(idle: 0, method: "GET")
        #expect(status == 502)
        #expect(count == 1)
    }

    /// The origin may have acted on it before the connection broke.
    @Test func whatIsNotIdempotentIsSentOnce() async throws {
        let (status, count, _) = try await deaths(idle: 4, method: "POST")
        #expect(status == 502)
        #expect(count == 1)
    }
}
