public import Foundation
public import FoundationNetworking
public import PinnedSession

// URLRequest and HTTPURLResponse of FoundationNetworking, for programs that have them already.

extension HTTPRequest {
    /// A request with the URL, method, fields, body, cookie handling, cache policy and timeout of a URLRequest. The
    /// default timeout, 60 seconds, leaves the session's. Other properties have no effect: see `SessionConfiguration`.
    /// - Throws: `SessionError.invalidRequest` for a missing URL, a field that the session writes itself, or an
    ///   `httpBodyStream`, which can't be sent again.
    public init(_ request: URLRequest) throws(SessionError) {
        guard let url = request.url else { throw .invalidRequest("the URLRequest has no URL") }
        try self.init(url, method: request.httpMethod ?? "GET")
        handlesCookies = request.httpShouldHandleCookies
        if request.timeoutInterval != 60, !request.timeoutInterval.isNaN {
            timeout = .seconds(min(max(request.timeoutInterval, 0), 1e9))
        }
        for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
            // The session knows it better.
            if name.lowercased() == "content-length" { continue }
            try set(name, value)
        }
        guard request.httpBodyStream == nil else {
            throw .invalidRequest("\(self): an httpBodyStream can't be sent again; use RequestBody.stream")
        }
        if let data = request.httpBody { body = .data(data) }
        guard request.value(forHTTPHeaderField: "Cache-Control") == nil,
            let directive = Self.directive(of: request.cachePolicy)
        else { return }
        try set("Cache-Control", directive)
    }

    private static func directive(of policy: URLRequest.CachePolicy) -> String? {
        switch policy {
        case .useProtocolCachePolicy: nil
        case .returnCacheDataElseLoad: "max-stale"
        case .returnCacheDataDontLoad: "only-if-cached, max-stale"
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData, .reloadRevalidatingCacheData:
            "no-cache"
        @unknown default: "no-cache"
        }
    }
}

extension HTTPResponse {
    /// The response as an `HTTPURLResponse`: the values of a repeated field are joined.
    public var urlResponse: HTTPURLResponse? {
        guard let url = URL(string: url) else { return nil }
        var values: [String: String] = [:]
        for field in fields where values[field.name] == nil { values[field.name] = self[field.name] }
        let isHTTP2 = metrics.transactions.last?.networkProtocol == "h2"
        return HTTPURLResponse(
            url: url, statusCode: status, httpVersion: isHTTP2 ? "HTTP/2" : "HTTP/1.1", headerFields: values)
    }
}

extension SessionManager {
    /// Makes a request and collects the response's body: `SessionManager.data(for:)`.
    public func data(for request: URLRequest) async throws(SessionError) -> (Data, HTTPURLResponse) {
        let (body, response) = try await data(for: try HTTPRequest(request))
        return (Data(body), try response.foundation)
    }

    /// Makes a request with another body, and collects the response's body.
    public func upload(for request: URLRequest, from data: Data) async throws(SessionError) -> (Data, HTTPURLResponse) {
        let (body, response) = try await upload(for: try HTTPRequest(request), from: .data(data))
        return (Data(body), try response.foundation)
    }

    /// Makes a request with a file as its body, and collects the response's body.
    public func upload(
        for request: URLRequest, fromFile file: URL
    ) async throws(SessionError) -> (
        Data, HTTPURLResponse
    ) {
        let (body, response) = try await upload(for: try HTTPRequest(request), from: try .file(file))
        return (Data(body), try response.foundation)
    }

    /// Makes a request, and writes the response's body to the file of a file URL.
    @discardableResult
    public func download(for request: URLRequest, to file: URL) async throws(SessionError) -> HTTPURLResponse {
        try await download(for: try HTTPRequest(request), to: file).foundation
    }
}

extension HTTPResponse {
    fileprivate var foundation: HTTPURLResponse {
        get throws(SessionError) {
            guard let urlResponse else { throw .badResponse("\(self): Foundation can't express the response") }
            return urlResponse
        }
    }
}
