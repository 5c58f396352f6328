import PinproxyClients
import PinproxyConfiguration
import PinproxyRecords
import PinproxySerialization

extension ServiceRequest {
    /// Pins of the server's own entry hold, whatever its action is.
    /// - Parameters:
    ///   - body: of a POST; nil: a GET.
    ///   - authorization: the value of Authorization.
    init(
        pinned url: ServiceURL, fields: [(name: String, value: String)], body: [UInt8]? = nil,
        authorization: Secret? = nil, under configuration: ActiveConfiguration
    ) throws {
        let snapshot = configuration.snapshot
        let entry = snapshot.entry(for: url.host, port: url.port)
        try self.init(
            url, fields: fields, body: body, upstream: configuration.upstream,
            policy: entry?.policy ?? snapshot.defaultPolicy, tls: entry?.tls, authorization: authorization)
    }
}
