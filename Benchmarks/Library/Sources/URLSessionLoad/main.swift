import Foundation
import FoundationNetworking
import Load

struct Client: LoadClient {
    let session: URLSession

    private func url(_ text: String) throws -> URL {
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        return url
    }

    func get(_ url: String) async throws -> Int { try await session.data(from: self.url(url)).0.count }
    func download(_ url: String, to path: String) async throws {
        let (file, _) = try await session.download(from: self.url(url))
        try FileManager.default.moveItem(at: file, to: URL(fileURLWithPath: path))
    }
    func end() async throws { session.invalidateAndCancel() }
}

let load = Load()
// It reads only the system's anchors: library.py mounts the authority over them.
let configuration = URLSessionConfiguration.ephemeral
if let connections = load.connections { configuration.httpMaximumConnectionsPerHost = connections }
configuration.urlCache = nil
try await load.run(Client(session: URLSession(configuration: configuration)))
