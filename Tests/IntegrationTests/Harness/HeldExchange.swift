import Testing

extension SharedBed {
    /// A client in the middle of a response, which continues after ``release()``: `first,second`.
    func holdingClient() async throws -> ChildProcess {
        let client = try await bed.start(["curl", "-sS", "\(url)/hold/it"], environment: proxy.clientEnvironment)
        _ = try await #require(origin).events.first("held")
        return client
    }

    /// Makes the origin continue. This request bypasses the proxy.
    func release() async throws {
        let run = try await bed.run([
            "curl", "-sS", "--cacert", bed.path("roots.pem"), "--resolve", "\(authority):127.0.0.1",
            "\(url)/release/it",
        ])
        #expect(run.succeeded, "\(run)")
    }
}
