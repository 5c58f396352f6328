package import PinproxyTLS

/// `cache` and `shared` in pins.yaml, with the defaults.
package struct CacheRules: Sendable, Hashable {
    package enum Key: String, Sendable, CaseIterable {
        case cache, shared
    }

    package enum Store: String, Sendable, CaseIterable {
        case off, memory, disk
    }

    package var store = Store.off
    /// One store for all users; else each has a private one.
    package var isShared = false

    package init() {}
}

/// `cache` in pinproxy.yaml: bytes.
package struct CacheSizes: Sendable, Equatable {
    package var memory = 100_000_000
    package var disk = 2_000_000_000

    package init() {}
}

/// A host's cache settings, for an exchange.
package struct CacheTerms: Sendable, Hashable {
    package let rules: CacheRules
    /// A digest of all rules that change requests or validate responses: responses stored under other rules aren't
    /// found.
    package let identity: SHA256Digest

    package init(_ rules: CacheRules, identity: SHA256Digest) {
        self.rules = rules
        self.identity = identity
    }
}
