import PinproxyHTTPWire
import Synchronization

/// All workers' requests in flight that others may share (`session.coalesce`).
package final class SharedFetches: Sendable {
    /// Identifies equal requests, apart from the response's Vary.
    struct Key: Hashable {
        let origin: OriginKey
        let reach: UpstreamTarget.Reach
        /// Its rules by identity, which is one configuration's.
        let rules: ObjectIdentifier
        let target: [UInt8]
        /// Every field sent to the origin but ``RequestView/isIgnored(_:)``: a response may vary by any.
        let fields: [Field]

        struct Field: Hashable {
            /// In lower case.
            let name: String
            /// Bytes, since as text all invalid UTF-8 would be equal.
            let value: [UInt8]
        }
    }

    private let fetches = Mutex<[Key: SharedFetch]>([:])

    package init() {}

    /// The destination of a shared request.
    struct Place {
        let key: Key
        let destination: Destination
        let rules: ExchangeRules
        /// The pattern of the matched entry.
        let entry: String?
    }

    /// Joins the request in flight, or begins one by `task`. Returns the reader's number, and whether to run it.
    func join(
        _ key: Key, as reader: SharedFetch.Reader, task: @autoclosure () -> UInt64
    ) -> (fetch: SharedFetch, number: Int, isNew: Bool) {
        fetches.withLock { fetches in
            if let fetch = fetches[key], let number = fetch.join(reader) { return (fetch, number, false) }
            let fetch = SharedFetch(task: task())
            fetches[key] = fetch
            return (fetch, fetch.join(reader) ?? 0, true)
        }
    }

    /// Closes it to further requests.
    func close(_ key: Key, _ fetch: SharedFetch) {
        fetches.withLock { if $0[key] === fetch { $0[key] = nil } }
    }
}

extension RequestView {
    /// Whether another client's response would do: a GET without fields of identity, range or freshness, except
    /// `allowed`.
    func isShareable(with allowed: [SessionRules.PersonalField]) -> Bool {
        guard head.method == .get, head.bodyLength == .none, !head.wantsUpgrade else { return false }
        for field in head.fields {
            switch field.id {
            case .authorization: if !allowed.contains(.authorization) { return false }
            case .cookie: if !allowed.contains(.cookie) { return false }
            case .range, .ifRange: if !allowed.contains(.range) { return false }
            case .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .cacheControl, .pragma, .expect:
                return false
            default: continue
            }
        }
        return true
    }

    /// As sent to the origin.
    var pathAndQuery: [UInt8] {
        if case .absolute(let parts) = head.targetForm { return bytes.extracting(parts.pathAndQuery.offsets).array }
        return bytes.extracting(head.target.offsets).array
    }

    /// Whether the field may differ: it is the connection's, in the URL, or relevant only with Vary.
    static func isIgnored(_ field: FieldName) -> Bool {
        switch field {
        case .userAgent, .acceptLanguage: true
        case .host, .connection, .keepAlive, .proxyConnection, .proxyAuthorization, .te, .upgrade, .http2Settings: true
        default: false
        }
    }
}

extension OwnedRequest {
    /// Fields sent to the origin, sorted by name; those of one name keep their order.
    var fields: [SharedFetches.Key.Field] {
        let view = view
        return view.head.fields.compactMap { field in
            if RequestView.isIgnored(field.id) { return nil }
            return SharedFetches.Key.Field(
                name: field.name.text(in: view.bytes).lowercased(), value: Array(message[field.value.offsets]))
        }.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }.map(\.element)
    }

    /// Whether the requests agree in the fields that the response's Vary names (RFC 9110 section 12.5.5).
    func agrees(with other: OwnedRequest, in response: OwnedResponse) -> Bool {
        for name in response.names(in: .vary) where values(of: name) != other.values(of: name) { return false }
        return true
    }

    private func values(of name: String) -> [[UInt8]] { view.head.fields.values(of: name, in: view.bytes) }
}

extension OwnedResponse {
    fileprivate func names(in list: FieldName) -> [String] {
        let view = view
        return view.head.fields.filter { $0.id == list }.flatMap { field in
            field.value.text(in: view.bytes).split(separator: ",").map {
                $0.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" && $0 != "=" }.lowercased()
            }
        }
    }

    func values(of name: String) -> [[UInt8]] { view.head.fields.values(of: name, in: view.bytes) }

    /// Whether it may go to other clients (RFC 9111 section 3): nothing in it is personal.
    var isForEverybody: Bool {
        let view = view
        if view.head.status == 401 || view.head.status == 407 || view.head.first(.setCookie) != nil { return false }
        let directives = names(in: .cacheControl)
        if directives.contains("private") || directives.contains("no-store") { return false }
        return !names(in: .vary).contains("*") && !view.isStream
    }
}

extension ResponseView {
    /// Streams of events or messages start at the request, and don't end.
    var isStream: Bool {
        for field in head.fields where field.id == .contentType {
            let type = field.value.text(in: bytes).lowercased()
            if ["text/event-stream", "multipart/x-mixed-replace", "application/grpc"].contains(where: type.hasPrefix) {
                return true
            }
        }
        return false
    }
}

extension [HeadField] {
    /// The values of the fields of a lower-case name.
    fileprivate func values(of name: String, in bytes: Span<UInt8>) -> [[UInt8]] {
        compactMap { field -> [UInt8]? in
            guard field.name.text(in: bytes).lowercased() == name else { return nil }
            return bytes.extracting(field.value.offsets).array
        }
    }
}
