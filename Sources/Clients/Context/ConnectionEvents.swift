import Logging
import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxyHTTP2
package import PinproxyHTTPWire
import PinproxyRecords
package import PinproxySession

/// Logs and counts what peers did to connections of HTTP/2, once for each connection.
extension WorkerContext {
    /// - Parameters:
    ///   - authority: that of the client's CONNECT; nil: the connection is one to the proxy itself.
    ///   - requests: in flight on the connection.
    package func report(
        _ notice: HTTP2Notice, by client: Endpoint, _ traits: ClientTraits?, asking authority: Authority? = nil,
        requests: Int
    ) {
        counters.count(notice, of: .client)
        var fields = fields(of: client, traits, asking: authority)
        fields["peer"] = "client"
        log(notice, "the client", fields, requests: requests)
    }

    /// For a client that doesn't seem to trust the proxy's authority.
    func report(_ departure: ClientDeparture) {
        var fields = fields(of: departure.source, departure.traits, asking: departure.authority)
        fields["cause"] = "\(ClientDeparture.cause)"
        log(.warning, "client.distrust", fields)
    }

    private func fields(of client: Endpoint, _ traits: ClientTraits?, asking authority: Authority?) -> Logger.Metadata {
        var fields: Logger.Metadata = ["client": "\(client)"]
        if let traits { fields.merge(traits.fields) { $1 } }
        if let authority {
            fields["host"] = "\(authority.host)"
            fields["port"] = .stringConvertible(authority.port)
            if TestHost(authority.host) != nil { fields["trial"] = .stringConvertible(true) }
        }
        return fields
    }

    func report(_ notice: HTTP2Notice, by connection: HTTP2Upstream) {
        counters.count(notice, of: .origin)
        let key = connection.origin.key
        log(
            notice, "the origin",
            [
                "peer": "origin", "host": "\(key.host)", "port": .stringConvertible(key.port),
                "address": "\(connection.address)",
            ], requests: connection.streamCount)
    }

    private func log(_ notice: HTTP2Notice, _ peer: String, _ fields: Logger.Metadata, requests: Int) {
        var fields = fields
        fields["requests"] = .stringConvertible(requests)
        switch notice {
        case .flood(let flood):
            fields["flood"] = "\(flood.rawValue)"
            fields["cause"] = "\(peer) floods its HTTP/2 connection: \(flood)"
            fields["effect"] = "the connection is ended (GOAWAY with ENHANCE_YOUR_CALM), and its requests with it"
            log(.warning, "connection.flood", fields)
        case .broke(let code, let reason):
            fields["code"] = "\(code)"
            fields["cause"] = "\(peer) breaks the protocol of HTTP/2: \(reason)"
            fields["effect"] = "the connection is ended (GOAWAY with \(code)), and its requests with it"
            log(.warning, "connection.failed", fields)
        case .goAway(.noError, _): break
        case .goAway(let code, let debug):
            fields["code"] = "\(code)"
            let text = debug.isEmpty ? "" : ": \(ShownText(debug))"
            fields["cause"] = "\(peer) ends its HTTP/2 connection with an error, \(code)\(text)"
            log(.notice, "connection.goaway", fields)
        }
    }
}
