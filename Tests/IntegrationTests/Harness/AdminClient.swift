import Foundation

/// The admin port of a test's proxy, as a plain HTTP client sees it.
struct AdminClient: Sendable {
    let port: UInt16

    static let section = ["admin": ["listen: 127.0.0.1:0"]]

    init(_ proxy: ProxyProcess) async throws {
        let ready = try await proxy.events.first("proxy.ready")
        guard let place = ready["admin"]?.split(separator: ",").first,
            let port = UInt16(place.split(separator: ":").last ?? "")
        else {
            throw TestBedError("proxy.ready names no admin port: \(ready)")
        }
        self.port = port
    }

    /// - Parameter fields: more header lines, each with its line end; a missing Host field is added.
    func ask(_ method: String, _ target: String, _ fields: String = "", body: String = "") async throws -> RawResponse {
        let connection = try RawConnection(port: port)
        let host = fields.lowercased().contains("host:") ? "" : "Host: 127.0.0.1:\(port)\r\n"
        try await connection.send("\(method) \(target) HTTP/1.1\r\n\(host)\(fields)Connection: close\r\n\r\n\(body)")
        let bytes = try await connection.receiveAll()
        guard let response = RawResponse(bytes) else {
            throw TestBedError("no whole answer to \(target): \(String(decoding: bytes.prefix(500), as: UTF8.self))")
        }
        return response
    }

    func object(_ target: String) async throws -> [String: Any] {
        let answer = try await ask("GET", target)
        guard answer.status == 200,
            let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
        else { throw TestBedError("\(answer)") }
        return object
    }
}
