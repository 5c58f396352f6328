import HTTPWire
import Synchronization

/// The requests in flight that others may share (`session.coalesce`), of all workers.
package final class SharedFetches: Sendable {
    /// What must be equal for two requests to be the same, besides what the response's Vary names.
    struct Key: Hashable {
        let origin: OriginKey
        let reach: UpstreamTarget.Reach
        /// The rules that hold for it, by their identity: one configuration's.
        let rules: ObjectIdentifier
        let target: [UInt8]
        /// Every field sent to the origin except ``RequestView/isIgnored(_:)``: a response may vary by any of them.
        let fields: [Field]

        struct Field: Hashable {
            /// In lower case.
            let name: String
            /// In bytes: as texts, values that aren't UTF-8 would be equal.
            let value: [UInt8]
        }
    }

    private let fetches = Mutex<[Key: SharedFetch]>([:])

    package init() {}

    /// What a request to be shared goes by.
    struct Place {
        let key: Key
        let destination: Destination
        let rules: ExchangeRules
        /// The pattern of the entry that decided.
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
            // Nobody else has it yet.
            return (fetch, fetch.join(reader) ?? 0, true)
        }
    }

    /// Nobody joins it from now on.
    func close(_ key: Key, _ fetch: SharedFetch) {
        fetches.withLock { if $0[key] === fetch { $0[key] = nil } }
    }
}

extension RequestView {
    /// Whether another client's answer would do: a GET without a word of identity, range or freshness, except
    /// `allowed`.
    func isShareable(with allowed: [SessionRules.PersonalField]) -> Bool {
        guard head.method == .get, head.bodyLength == .none, !head.wantsUpgrade else { return false }
        for field in head.fields {
            switch field.id {
            case .authorization: if !allowed.contains(.authorization) { return false }
            case .cookie: if !allowed.contains(.cookie) { return false }
            case .range, .ifRange: if !allowed.contains(.range) { return false }
            case .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .cacheControl, .pragma, .expect: return false
            default: continue
            }
        }
        return true
    }

    /// Whether identical requests may differ in that field: of the connection, in the URL, or relevant only with Vary.
    static func isIgnored(_ field: FieldName) -> Bool {
        switch field {
        case .userAgent, .acceptLanguage: true
        case .host, .connection, .keepAlive, .proxyConnection, .proxyAuthorization, .te, .upgrade, .http2Settings: true
        default: false
        }
    }
}

extension OwnedRequest {
    /// As the origin gets it.
    var pathAndQuery: [UInt8] {
        if case .absolute(let parts) = head.targetForm { return Array(message[parts.pathAndQuery.offsets]) }
        return Array(message[head.target.offsets])
    }

    /// What it says to the origin, in the order of names: fields of one name keep theirs.
    var fields: [SharedFetches.Key.Field] {
        let view = view
        return view.head.fields.compactMap { field in
            if RequestView.isIgnored(field.id) { return nil }
            return SharedFetches.Key.Field(
                name: field.name.text(in: view.bytes).lowercased(), value: Array(message[field.value.offsets]))
        }.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }.map(\.element)
    }

    /// Whether both requests say the same in the fields that a response names in Vary (RFC 9110 section 12.5.5).
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

    /// Whether it may go to others than the one who asked (RFC 9111 section 3): it says nothing that is for him alone.
    var isForEverybody: Bool {
        let view = view
        if view.head.status == 401 || view.head.status == 407 || view.head.first(.setCookie) != nil { return false }
        let directives = names(in: .cacheControl)
        if directives.contains("private") || directives.contains("no-store") { return false }
        return !names(in: .vary).contains("*") && !view.isStream
    }
}

extension ResponseView {
    /// It tells what happens from when it was asked for, and has no end.
    var isStream: Bool {
        for field in head.fields where field.id == .contentType {
            let type = field.value.text(in: bytes).lowercased()
            if ["text/event-stream", "multipart/x-mixed-replace"].contains(where: type.hasPrefix) { return true }
        }
        return false
    }
}

extension [HeadField] {
    /// The values of the fields of a name, which is given in lower case.
    fileprivate func values(of name: String, in bytes: Span<UInt8>) -> [[UInt8]] {
        compactMap { field -> [UInt8]? in
            guard field.name.text(in: bytes).lowercased() == name else { return nil }
            return bytes.extracting(field.value.offsets).array
        }
    }
}
