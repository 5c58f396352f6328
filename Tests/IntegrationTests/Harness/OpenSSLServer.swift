/// `openssl s_server` as an origin.
struct OpenSSLServer: Sendable {
    let process: ChildProcess
    let port: UInt16

    init(in bed: TestBed, chain: ServedChain, _ options: [String]) async throws {
        let certificate = try bed.file("s_server.pem", chain.pem)
        let key = try bed.file("s_server.key", chain.keyPEM)
        process = try await bed.start(
            [
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-cert_chain", certificate,
                "-key", key,
            ] + options)
        port = try await process.output.first(awaiting: "s_server's port") { line in
            line.hasPrefix("ACCEPT ") ? line.split(separator: ":").last.flatMap { UInt16($0) } : nil
        }
    }
}
