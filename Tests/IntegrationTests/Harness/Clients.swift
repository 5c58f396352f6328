extension TestBed {
    /// Runs curl with the environment that makes it use the proxy.
    func curl(via proxy: ProxyProcess, _ arguments: [String]) async throws -> Run {
        try await run(["curl", "-sS", "--suppress-connect-headers"] + arguments, environment: proxy.clientEnvironment)
    }

    /// Sends exactly these bytes over TLS through a CONNECT, and returns all that comes back until the other side
    /// closes.
    func secureExchange(
        via proxy: ProxyProcess, to authority: String, _ bytes: String
    ) async throws -> Run {
        try await run(
            [
                "timeout", "30", "openssl", "s_client", "-proxy", "\(proxy.address):\(proxy.port)", "-connect",
                authority, "-servername", String(authority.split(separator: ":")[0]), "-CAfile", proxy.authority,
                "-verify_return_error", "-quiet",
            ], input: Array(bytes.utf8))
    }
}
