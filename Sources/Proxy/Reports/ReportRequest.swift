import Configuration
import Security
import Session
import TLS

/// The POST that carries a report, and where it goes.
struct ReportRequest {
    let target: UpstreamTarget
    let bytes: [UInt8]

    init(_ destination: ReportURI, _ body: [UInt8], upstream: UpstreamSettings) {
        let host = destination.host.contains(":") ? "[\(destination.host)]" : destination.host
        let usual: UInt16 = destination.isSecure ? 443 : 80
        let authority = destination.port == usual ? host : "\(host):\(destination.port)"
        target = UpstreamTarget(
            host: destination.host, port: destination.port,
            layer: destination.isSecure
                ? .tls(SecurityPolicy(), upstream.anchors, ServerName(host: destination.host)) : .plain,
            upstream: upstream)
        // Under TLS a parent proxy is asked for a tunnel, and the request is the collector's alone.
        let parent = destination.isSecure ? nil : upstream.parent
        var fields = [
            "Host: \(authority)", "User-Agent: pinproxy", "Content-Type: application/json",
            "Content-Length: \(body.count)", "Connection: close",
        ]
        if let authorization = parent?.authorization { fields.append("Proxy-Authorization: \(authorization)") }
        let form = parent == nil ? destination.target : "http://\(authority)\(destination.target)"
        bytes = Array((["POST \(form) HTTP/1.1"] + fields + ["", ""]).joined(separator: "\r\n").utf8) + body
    }
}
