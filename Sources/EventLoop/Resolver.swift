/// Looks up the addresses of host names: hosts file, then DNS with the system's servers and search list, over TCP
/// where an answer doesn't fit into UDP.
///
/// One for each loop; the cache is shared. A name that is being looked up isn't asked for again: the second
/// caller waits for the same answer.
package final class Resolver {
    private let loop: EventLoop
    private let cache: ResolverCache
    private let settings: ResolverChannel.Settings
    private var channel: ResolverChannel
    /// Channels of earlier configurations, as long as they have questions in flight.
    private var retired: [ResolverChannel] = []
    private var lookups: [String: Lookup] = [:]

    package convenience init(loop: EventLoop, cache: ResolverCache) throws(ResolutionError) {
        try self.init(loop: loop, cache: cache, settings: ResolverChannel.Settings())
    }

    init(loop: EventLoop, cache: ResolverCache, settings: ResolverChannel.Settings) throws(ResolutionError) {
        self.loop = loop
        self.cache = cache
        self.settings = settings
        channel = try ResolverChannel(loop: loop, settings: settings)
    }

    /// Look-ups in progress end with `.cancelled`.
    deinit {
        // A channel whose loop doesn't run any more would otherwise be kept for ever by its questions.
        for channel in retired + [channel] { channel.close() }
    }

    /// Looks up the IPv4 and IPv6 addresses of `name`, the better ones first (RFC 6724), at least one.
    ///
    /// `completion` is called once on the loop's thread, unless the resolution is cancelled before: for IP literals
    /// and names in the cache or the hosts file even before this returns, otherwise later. Letting the
    /// `Resolution` go doesn't cancel it. There is no time limit but that of the servers (some 14 s each): the
    /// caller has a deadline of its own.
    @discardableResult
    package func resolve(
        _ name: String, completion: @escaping (Result<[IPAddress], ResolutionError>) -> Void
    ) -> Resolution {
        let resolution = Resolution(completion)
        if let address = IPAddress(name) {
            resolution.complete(.success([address]))
            return resolution
        }
        guard Self.isPlausible(name) else {
            resolution.complete(.failure(.invalidName(name)))
            return resolution
        }
        let key = name.lowercased()
        if let answer = cache.answer(for: key, at: loop.now) {
            resolution.complete(answer)
        } else if let lookup = lookups[key] {
            lookup.waiting.append(resolution)
        } else {
            start(key, for: resolution)
        }
        return resolution
    }

    /// Reads /etc/resolv.conf anew and forgets what was found under the old one (the hosts file is read on every
    /// look-up anyway). Look-ups in progress end on the old servers, and aren't remembered. If it throws, everything
    /// is as before.
    package func reload() throws(ResolutionError) {
        let old = channel
        channel = try ResolverChannel(loop: loop, settings: settings)
        lookups = [:]
        cache.removeAll()
        old.closeWhenIdle()
        retired.append(old)
        retired.removeAll(where: \.isClosed)
    }

    private func start(_ key: String, for resolution: Resolution) {
        let lookup = Lookup(first: resolution)
        lookups[key] = lookup
        let epoch = cache.epoch
        // The look-up may outlive the resolver: the answer still goes to those who wait.
        channel.lookUp(key) { [weak self] answer, timeToLive in
            self?.finished(lookup, key, answer, timeToLive, epoch)
            for resolution in lookup.waiting { resolution.complete(answer) }
        }
    }

    private func finished(
        _ lookup: Lookup, _ key: String, _ answer: Result<[IPAddress], ResolutionError>, _ timeToLive: Int,
        _ epoch: UInt64
    ) {
        // After a reload another look-up may run under this name.
        if lookups[key] === lookup { lookups[key] = nil }
        cache.store(answer, for: key, timeToLive: timeToLive, epoch: epoch, at: loop.now)
    }

    /// Whether DNS could know the name: labels of 1 to 63 bytes, 253 in all, a dot at the end allowed; no NUL, which
    /// would end the C string early and ask for another name.
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

    /// One question to c-ares, and who waits for its answer.
    private final class Lookup {
        var waiting: [Resolution]

        init(first: Resolution) {
            waiting = [first]
        }
    }
}

/// A resolution that somebody waits for.
package final class Resolution {
    private var completion: ((Result<[IPAddress], ResolutionError>) -> Void)?

    fileprivate init(_ completion: @escaping (Result<[IPAddress], ResolutionError>) -> Void) {
        self.completion = completion
    }

    /// The completion won't be called, and is let go. The question stays on its way for others, and for the cache.
    package func cancel() {
        completion = nil
    }

    fileprivate func complete(_ answer: Result<[IPAddress], ResolutionError>) {
        let completion = self.completion
        self.completion = nil
        completion?(answer)
    }
}
