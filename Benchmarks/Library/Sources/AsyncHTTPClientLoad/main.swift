import AsyncHTTPClient
import Load
import NIOSSL

struct Client: LoadClient {
    let client: HTTPClient

    func get(_ url: String) async throws -> Int {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
        return try await response.body.collect(upTo: 64 << 20).readableBytes
    }
    func download(_ url: String, to path: String) async throws {
        let delegate = try FileDownloadDelegate(path: path)
        _ = try await client.execute(request: HTTPClient.Request(url: url), delegate: delegate).get()
    }
    func end() async throws { try await client.shutdown() }
}

let load = Load()
var configuration = HTTPClient.Configuration(certificateVerification: .fullVerification)
configuration.tlsConfiguration = .makeClientConfiguration()
configuration.tlsConfiguration?.trustRoots = .file(load.authority)
if let connections = load.connections {
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
}
try await load.run(Client(client: HTTPClient(configuration: configuration)))
