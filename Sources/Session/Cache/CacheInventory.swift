import PinproxyDiskStore
package import PinproxyHTTPWire
import PinproxyTLS

/// The use of one of the stores.
package struct StoreFigures: Sendable, Equatable {
    package let store: CacheRules.Store
    /// Bytes of memory or disk, about.
    package let bytes: Int
    package let limit: Int
    package let responses: Int
}

/// The stored responses of one origin.
package struct StoredOrigin: Sendable, Equatable {
    /// `https://example.com`
    package let origin: String
    package private(set) var responses = 0
    package private(set) var bytes = 0

    fileprivate init(_ origin: String) { self.origin = origin }

    fileprivate mutating func add(_ bytes: Int, responses: Int = 1) {
        self.responses += responses
        self.bytes += bytes
    }
}

/// Responses to remove together.
package enum PurgeScope: Sendable, Equatable {
    case all
    /// Over http and https; nil: on every port.
    case host(String, port: UInt16?)
    /// With exactly this query, for every user.
    case url(RequestURL)

    package func includes(_ key: CacheKey) -> Bool {
        switch self {
        case .all: true
        case .host(let host, let port): key.host == host && (port == nil || key.port == port)
        case .url(let url): key.isOf(url)
        }
    }
}

/// The cache on disk can't be asked, or has failed.
package struct CacheProblem: Error, CustomStringConvertible {
    package let description: String

    fileprivate static let closed = CacheProblem(
        description: "the cache on disk isn't open (cache.failed in the log says why)")
    fileprivate init(description: String) { self.description = description }
    fileprivate init(_ failure: StoringFailure) { description = "the cache on disk: \(failure)" }
}

/// The contents of the cache, for display and metrics. All but ``figures`` walk over it, and wait for the disk.
extension ResponseCache {
    /// Asks the store on disk; nil: there is no such store.
    private func onDisk<Answer>(
        _ ask: (DiskStore) throws(StoringFailure) -> Answer
    ) throws(CacheProblem) -> Answer? {
        guard let disk else { return nil }
        guard let store = disk.store else { throw .closed }
        do throws(StoringFailure) { return try ask(store) } catch { throw CacheProblem(error) }
    }

    package var figures: [StoreFigures] {
        let figures = memory.figures
        var all = [
            StoreFigures(store: .memory, bytes: figures.bytes, limit: memory.limit, responses: figures.responses)
        ]
        if let status = disk?.store?.status {
            all.append(
                StoreFigures(
                    store: .disk, bytes: Int(clamping: status.bytes), limit: Int(clamping: status.limit),
                    responses: status.records))
        }
        return all
    }

    /// Origins with the most bytes first; on disk by their hosts.
    package func origins(most: Int) throws(CacheProblem) -> [StoredOrigin] {
        var found: [String: StoredOrigin] = [:]
        memory.forEach { key, response in
            found[key.origin, default: StoredOrigin(key.origin)].add(response.size)
        }
        let usages = try onDisk { store throws(StoringFailure) in try store.topHosts(most) }
        for usage in usages ?? [] {
            found[usage.host, default: StoredOrigin(usage.host)].add(
                Int(clamping: usage.bytes), responses: usage.records)
        }
        return Array(found.values.sorted { ($0.bytes, $1.origin) > ($1.bytes, $0.origin) }.prefix(most))
    }

    /// Everything stored for a URL, for any client.
    /// - Parameters:
    ///   - asked: a request for it.
    ///   - policies: the policies in force.
    package func responses(
        for url: RequestURL, asked: OwnedRequest, under policies: Set<CachePolicy>
    ) throws(CacheProblem) -> [(owner: CacheKey.Owner, store: CacheRules.Store, response: StoredResponse)] {
        var found: [(owner: CacheKey.Owner, store: CacheRules.Store, response: StoredResponse)] = []
        memory.forEach { key, response in
            if key.isOf(url) { found.append((key.owner, .memory, response)) }
        }
        let records = try onDisk { store throws(StoringFailure) in try store.records(url: "\(url)") }
        for record in records ?? [] {
            guard let owner = CacheKey.Owner(record.identity.owner) else { continue }
            let policy = policies.first { record.identity.variant.starts(with: $0.digest.bytes) } ?? CachePolicy.former
            guard let response = StoredResponse(record, policy, asked) else { continue }
            found.append((owner, .disk, response))
        }
        return found
    }

    /// The number of responses in memory for its path with other queries or ports, or over the other scheme.
    package func neighbours(of url: RequestURL) -> Int {
        var count = 0
        memory.forEach { key, _ in
            if key.host == url.authority.host, key.path == url.target.path, !key.isOf(url) { count += 1 }
        }
        return count
    }

    /// - Returns: the number of removed responses.
    package func remove(_ scope: PurgeScope) throws(CacheProblem) -> Int {
        let ofMemory = memory.removeAll(where: scope.includes)
        let ofDisk = try onDisk { store throws(StoringFailure) in
            switch scope {
            case .all: try store.purgeAll()
            case .host(let host, nil): try store.purge(host: host)
            case .host(let host, let port?): try store.purge { $0 == host && RequestURL.port(of: $1) ?? port == port }
            case .url(let url): try store.purge(url: "\(url)")
            }
        }
        return ofMemory + (ofDisk?.records ?? 0)
    }
}

extension RequestURL {
    /// Nil: not a URL.
    fileprivate static func port(of url: String) -> UInt16? { (try? RequestURL(url))?.authority.port }
}

extension CacheKey {
    package func isOf(_ url: RequestURL) -> Bool {
        host == url.authority.host && port == url.authority.port && isSecure == url.isSecure
            // `http://host` has no path.
            && (target == url.target || target.isEmpty && url.target == [UInt8(ascii: "/")])
    }

    fileprivate var path: ArraySlice<UInt8> { target.path }
}

extension [UInt8] {
    fileprivate var path: ArraySlice<UInt8> { prefix { $0 != UInt8(ascii: "?") } }
}
