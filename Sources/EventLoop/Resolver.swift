/// Resolves host names: hosts file, then DNS with the system's servers and search list. `localhost` and names below it
/// are the loopback, without a query (RFC 6761 section 6.3). One per loop; the cache is shared. Concurrent look-ups of
/// a name share the answer.
package final class Resolver {
    private let loop: EventLoop
    private let cache: ResolverCache
    private let settings: ResolverChannel.Settings
    private var channel: ResolverChannel
    private var lookups: [String: Lookup] = [:]
    package private(set) var counts = Counts()

    package struct Counts: Sendable {
        /// Answers from the cache.
        package var cached = 0
        package var found = 0
        package var failed = 0

        package init() {}
    }

    package convenience init(loop: EventLoop, cache: ResolverCache) throws(ResolutionError) {
        try self.init(loop: loop, cache: cache, settings: ResolverChannel.Settings())
    }

    /// - Parameter server: the only name server, `address:port`, instead of the system's.
    package convenience init(loop: EventLoop, cache: ResolverCache, server: String) throws(ResolutionError) {
        var settings = ResolverChannel.Settings()
        settings.servers = server
        try self.init(loop: loop, cache: cache, settings: settings)
    }

    init(loop: EventLoop, cache: ResolverCache, settings: ResolverChannel.Settings) throws(ResolutionError) {
        self.loop = loop
        self.cache = cache
        self.settings = settings
        channel = try ResolverChannel(loop: loop, settings: settings)
    }

    /// Look-ups in progress end with `.cancelled`.
    deinit {
        // Queries would keep the channel of a stopped loop for ever.
        channel.close()
    }

    /// Looks up at least one address of `name`: IPv6 before IPv4, each sorted (RFC 6724).
    ///
    /// `completion` is called once on the loop's thread, unless cancelled: for literals, the cache and the hosts file
    /// before this returns. Releasing the `Resolution` doesn't cancel it. Servers time out after some 14 s each;
    /// callers set their own deadline.
    ///
    /// `begin`, for callers that needn't wait for both families (RFC 8305 section 3), is called at most once, before
    /// `completion`, which then brings all addresses.
    @discardableResult
    package func resolve(
        _ name: String, begin: (([IPAddress]) -> Void)? = nil,
        completion: @escaping (Result<[IPAddress], ResolutionError>) -> Void
    ) -> Resolution {
        answer(to: name, begin: begin.map { begin in { begin($0.addresses) } }) { completion($0.map(\.addresses)) }
    }

    /// Resolves the name, and returns the source of the addresses too.
    @discardableResult
    package func answer(
        to name: String, begin: ((AddressAnswer) -> Void)? = nil,
        completion: @escaping (Result<AddressAnswer, ResolutionError>) -> Void
    ) -> Resolution {
        let resolution = Resolution(begin, completion)
        if let address = IPAddress(name) {
            resolution.complete(.success(AddressAnswer([address], from: NameSource(.literal))))
            return resolution
        }
        guard Self.isPlausible(name) else {
            resolution.complete(.failure(.invalidName(name)))
            return resolution
        }
        if Self.isLocalhost(name) {
            resolution.complete(.success(AddressAnswer(Self.loopback, from: NameSource(.localhost))))
            return resolution
        }
        let key = name.lowercased()
        if let answer = cache.answer(for: key, at: loop.now) {
            counts.cached += 1
            resolution.complete(answer.map { AddressAnswer($0.addresses, from: $0.source.cached) })
        } else if let lookup = lookups[key] {
            lookup.waiting.append(resolution)
            if let answer = lookup.begun { resolution.begin(with: answer) }
        } else {
            start(key, for: resolution)
        }
        return resolution
    }

    /// Rereads /etc/resolv.conf, empties the cache, and repeats running look-ups with the new servers. Changes nothing
    /// if it throws.
    package func reload() throws(ResolutionError) {
        let old = channel
        channel = try ResolverChannel(loop: loop, settings: settings)
        cache.removeAll()
        for (key, lookup) in lookups { ask(key, lookup) }
        old.close()
    }

    private func start(_ key: String, for resolution: Resolution) {
        let lookup = Lookup(first: resolution)
        lookups[key] = lookup
        ask(key, lookup)
    }

    private func ask(_ key: String, _ lookup: Lookup) {
        lookup.questions += 1
        let number = lookup.questions
        let epoch = cache.epoch
        // The look-up may outlive the resolver: the answer still goes to the waiting callers.
        channel.lookUp(key) { beginning in
            guard lookup.questions == number else { return }
            lookup.begun = beginning
            for resolution in lookup.waiting { resolution.begin(with: beginning) }
        } answered: { [weak self] reply, source in
            // After a reload only the later answer counts.
            guard lookup.questions == number else { return }
            let answer: Result<AddressAnswer, ResolutionError>
            var lifetime = 0
            switch reply {
            case .addresses(let addresses, let timeToLive):
                (answer, lifetime) = (.success(AddressAnswer(addresses, from: source)), timeToLive)
            case .failed(let error): answer = .failure(error)
            }
            self?.finished(lookup, key, answer, lifetime, epoch)
            for resolution in lookup.waiting { resolution.complete(answer) }
        }
    }

    private static let loopback = ["::1", "127.0.0.1"].compactMap { IPAddress($0) }

    package static func isLocalhost(_ name: String) -> Bool {
        var name = name.utf8[...]
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        let local = "localhost".utf8
        guard name.count == local.count || name.dropLast(local.count).last == UInt8(ascii: ".") else { return false }
        return zip(name.reversed(), local.reversed()).allSatisfy { $0 | 0x20 == $1 } && name.count >= local.count
    }

    private func finished(
        _ lookup: Lookup, _ key: String, _ answer: Result<AddressAnswer, ResolutionError>, _ timeToLive: Int,
        _ epoch: UInt64
    ) {
        if case .success = answer { counts.found += 1 } else { counts.failed += 1 }
        lookups[key] = nil
        cache.store(answer, for: key, timeToLive: timeToLive, epoch: epoch, at: loop.now)
    }

    /// Whether DNS could have the name: labels of 1 to 63 bytes, 253 in all, perhaps a final dot; no NUL.
    private static func isPlausible(_ name: String) -> Bool {
        var total = 0
        var label = 0
        for byte in name.utf8 {
            total += 1
            if byte == UInt8(ascii: ".") {
                if label == 0 { return false }
                label = 0
            } else {
                label += 1
                if byte == 0 || label > 63 { return false }
            }
        }
        return total > 0 && (label == 0 ? total - 1 : total) <= 253
    }

    /// One look-up in flight, and its callers.
    private final class Lookup {
        var waiting: [Resolution]
        var questions = 0
        /// The addresses to begin with, if there are any yet.
        var begun: AddressAnswer?

        init(first: Resolution) {
            waiting = [first]
        }
    }
}

package final class Resolution {
    private var beginning: ((AddressAnswer) -> Void)?
    private var completion: ((Result<AddressAnswer, ResolutionError>) -> Void)?

    fileprivate init(
        _ beginning: ((AddressAnswer) -> Void)?,
        _ completion: @escaping (Result<AddressAnswer, ResolutionError>) -> Void
    ) {
        self.beginning = beginning
        self.completion = completion
    }

    /// Drops the closures. The query continues for other callers, and the cache.
    package func cancel() {
        beginning = nil
        completion = nil
    }

    fileprivate func begin(with answer: AddressAnswer) {
        let beginning = self.beginning
        self.beginning = nil
        beginning?(answer)
    }

    fileprivate func complete(_ answer: Result<AddressAnswer, ResolutionError>) {
        let completion = self.completion
        cancel()
        completion?(answer)
    }
}
