import PinproxyCaching
import PinproxyHTTPWire
import PinproxyLocalPeers
import PinproxySession
package import PinproxyTLS

/// Counts of the cache since the start.
package struct CacheCounts: Codable, Sendable, Equatable {
    /// Requests to hosts with a cache, as the log has it.
    package var hit = 0
    package var miss = 0
    package var revalidated = 0
    package var stale = 0
    /// Bytes of bodies that no origin had to send.
    package var savedBytes = 0
    /// The share of requests that got a stored body, from 0 to 1; nil: there was no request.
    package var hitRatio: Double?

    package init() {}
}

/// The answer of `GET /cache`.
package struct CacheReport: Codable, Sendable, Equatable {
    package struct Store: Codable, Sendable, Equatable {
        /// `memory` or `disk`.
        package let store: String
        package let bytes: Int
        package let limit: Int
        package let responses: Int
    }

    package struct Origin: Codable, Sendable, Equatable {
        /// `https://example.com`
        package let origin: String
        package let responses: Int
        package let bytes: Int
    }

    static let originLimit = 10

    package var requests: CacheCounts
    package var stores: [Store]
    /// At most 10 origins, the ones with the most bytes first.
    package var origins: [Origin]
    /// Entries with a cache; the defaults count as one.
    package var entries: Int
}

/// The answer of `GET /cache/responses?url=…`.
package struct StoredResponses: Codable, Sendable, Equatable {
    /// Without the query, which may be secret.
    package var url: String
    /// `memory` or `disk`; nil: the host has no cache, and ``refusal`` says why.
    package var store: String?
    package var shared: Bool?
    package var refusal: String?
    package var responses: [StoredResponseReport]
    /// Stored for the path with other queries or ports, or over the other scheme.
    package var others: Int
    /// Why the last response wasn't stored, and when that was.
    package var objection: String?
    package var objectionTime: UnixTime?
}

/// One stored response.
package struct StoredResponseReport: Codable, Sendable, Equatable {
    package enum Owner: String, Codable, Sendable {
        case everybody, user, account
    }

    package enum Answer: String, Codable, Sendable {
        case served
        /// While the origin is asked (RFC 5861).
        case servedStale = "served-stale"
        /// The origin is asked whether it still holds.
        case confirmed
        case fetched
        /// A reload has changed pins, trust or rules.
        case policyChanged = "policy-changed"
        /// The verdict about its server has ended.
        case verdictEnded = "verdict-ended"
    }

    /// The source of its freshness lifetime.
    package enum Basis: String, Codable, Sendable {
        case sharedMaxAge = "s-maxage"
        case maxAge = "max-age"
        case expires
        /// A tenth of the time since its last change.
        case heuristic
        case none
    }

    package struct Field: Codable, Sendable, Equatable {
        package let name: String
        /// Nil: the request had none, or it may be secret.
        package let value: String?
        package let hidden: Bool
    }

    package let store: String
    package let owner: Owner
    /// A user's number; nil for others.
    package let user: UInt32?
    /// The name of the user or account.
    package let ownerName: String?
    package let status: Int
    /// Bytes of its body.
    package let bytes: Int
    /// A part's first and last byte, and the length of the whole.
    package let first: UInt64?
    package let last: UInt64?
    package let complete: UInt64?
    /// The request's fields that Vary names.
    package let vary: [Field]
    package let received: UnixTime
    /// Seconds.
    package let age: Int64
    package let lifetime: Int64
    package let basis: Basis
    /// Seconds for which it is still fresh; 0 or less: for how long it has been stale.
    package let freshFor: Int64
    /// Each use asks the origin (`no-cache`).
    package let noCache: Bool
    /// `ETag` or `Last-Modified`; nil: the origin can't confirm it.
    package let validator: String?
    /// The answer to a GET that selects it.
    package let answer: Answer
}

extension CacheCounts {
    init(_ counts: ResponseCache.Counts) {
        let of = { (result: CacheResult) in counts.results[result] ?? 0 }
        (hit, miss, revalidated, stale) = (of(.hit), of(.miss), of(.revalidated), of(.stale))
        savedBytes = counts.savedBytes
        let stored = hit + revalidated + stale
        if stored + miss > 0 { hitRatio = (Double(stored) / Double(stored + miss) * 10_000).rounded() / 10_000 }
    }
}

extension StoredResponseReport {
    /// - Parameters:
    ///   - policies: those in force for its URL.
    ///   - now: Unix seconds.
    init(
        _ owner: CacheKey.Owner, _ store: CacheRules.Store, _ response: StoredResponse,
        under policies: Set<CachePolicy>,
        for request: CacheRequest, at now: UnixTime
    ) {
        self.store = store.rawValue
        switch owner {
        case .everybody: (self.owner, user, ownerName) = (.everybody, nil, nil)
        case .user(let number): (self.owner, user, ownerName) = (.user, number, UserName.of(number))
        case .account(let name): (self.owner, user, ownerName) = (.account, nil, String(decoding: name, as: UTF8.self))
        }
        let (traits, freshness) = (response.traits, response.freshness)
        status = traits.status
        bytes = response.bodyLength
        let part = response.part
        (first, last, complete) = (part?.bytes.lowerBound, part.map { $0.bytes.upperBound - 1 }, part?.complete)
        vary = response.chosenBy.map(Field.init)
        received = response.times.received
        age = freshness.age(at: now)
        lifetime = freshness.lifetime
        basis = Self.basis(response)
        freshFor = freshness.rest(at: now)
        noCache = traits.directives.flags.contains(.noCache)
        validator = traits.etag != nil ? "ETag" : traits.lastModified != nil ? "Last-Modified" : nil
        answer = Self.answer(response, under: policies, request, now)
    }

    private static func basis(_ response: StoredResponse) -> Basis {
        let directives = response.traits.directives
        if response.isForEverybody, directives.sharedMaxAge != nil { return .sharedMaxAge }
        if directives.maxAge != nil { return .maxAge }
        if response.traits.expires != .unsaid { return .expires }
        return response.freshness.isHeuristic ? .heuristic : .none
    }

    private static func answer(
        _ response: StoredResponse, under policies: Set<CachePolicy>, _ request: CacheRequest, _ now: UnixTime
    ) -> Answer {
        guard response.isStored(under: policies) else { return .policyChanged }
        guard response.validUntil > now else { return .verdictEnded }
        return switch response.answer(to: request, at: now) {
        case .fresh: .served
        case .stale: .servedStale
        case .ask(.partial): .fetched
        case .ask: response.traits.hasValidator ? .confirmed : .fetched
        case .unavailable: .fetched
        }
    }
}

extension StoredResponseReport.Field {
    /// Fields that select a representation and never hold a secret. Other fields may hold one.
    private static let shown: Set = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "accept-profile", "content-type", "dnt",
        "origin", "prefer", "range", "save-data", "te", "upgrade-insecure-requests", "user-agent", "x-requested-with",
    ]
    private static let shownFamilies = ["sec-ch-", "sec-fetch-", "access-control-request-"]

    init(_ name: String, _ value: [UInt8]?) {
        let isShown = Self.shown.contains(name) || Self.shownFamilies.contains { name.hasPrefix($0) }
        self.name = name
        hidden = value != nil && !isShown
        self.value = isShown ? value.map { String(decoding: $0, as: UTF8.self) } : nil
    }
}
