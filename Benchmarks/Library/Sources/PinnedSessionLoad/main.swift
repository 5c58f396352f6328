import Load
import PinnedSession

struct Client: LoadClient {
    let session: SessionManager

    func get(_ url: String) async throws -> Int { try await session.data(for: HTTPRequest(url)).body.count }
    func download(_ url: String, to path: String) async throws {
        try await session.download(for: HTTPRequest(url), to: path)
    }
    func end() async throws { session.invalidate() }
}

let load = Load()
var configuration = SessionConfiguration()
configuration.trust = .files([load.authority])
if let connections = load.connections { configuration.maximumConnectionsPerHost = connections }
try await load.run(Client(session: try SessionManager(configuration: configuration)))
