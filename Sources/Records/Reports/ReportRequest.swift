import Configuration
import HTTPWire
import Security
package import Session
import TLS

/// The POST that carries a report, and where it goes.
struct ReportRequest {
    let authority: Authority
    let target: UpstreamTarget
    let message: OwnedRequest
    let body: [UInt8]

    /// - Throws: if the URL's parts can't stand in a request, which the configuration rules out.
    init(_ destination: ReportURI, _ body: [UInt8], upstream: UpstreamSettings) throws {
        let host = destination.host.contains(":") ? "[\(destination.host)]" : destination.host
        let usual: UInt16 = destination.isSecure ? 443 : 80
        authority = try Authority.parse("\(host):\(destination.port)", defaultPort: nil).get()
        target = UpstreamTarget(
            host: destination.host, port: destination.port,
            layer: destination.isSecure
                ? .tls(SecurityPolicy(), upstream.anchors, ServerName(host: destination.host)) : .plain,
            upstream: upstream)
        let written = destination.port == usual ? host : "\(host):\(destination.port)"
        // As a proxy's client asks: what the next hop is to see of the URL is decided where that is known.
        let lines = [
            "POST \(destination.isSecure ? "https" : "http")://\(written)\(destination.target) HTTP/1.1",
            "Host: \(written)", "User-Agent: pinproxy", "Content-Type: application/json",
            "Content-Length: \(body.count)", "", "",
        ]
        message = try OwnedRequest(Array(lines.joined(separator: "\r\n").utf8))
        self.body = body
    }
}

/// What is said of a report that got no answer.
package typealias ReportRefusal = (ExchangeFailure, Destination) -> TaskRecord.Refusal
