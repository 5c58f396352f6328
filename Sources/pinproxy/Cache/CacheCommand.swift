internal import ArgumentParser
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxySecurity

struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Show what the cache stores and saves, and remove responses.",
        discussion: """
            Responses are stored for hosts with cache: memory or disk in the pin file (docs/cache.md). These commands \
            ask the running proxy: run them as its user or as root, since the stores hold what each user got.

            --json prints what the control socket answers; the --help of each subcommand describes it.

            Exits 1 if no proxy is running, or (show) nothing is stored for the URL.

            Examples:
              pinproxy cache
              pinproxy cache show 'https://example.com/file?version=2'
              pinproxy cache purge example.com
              pinproxy cache purge https://example.com/file
              pinproxy cache purge --all
            """,
        subcommands: [CacheSummaryCommand.self, CacheShowCommand.self, CachePurgeCommand.self],
        defaultSubcommand: CacheSummaryCommand.self)
}

struct CacheSummaryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "summary", abstract: "Show how full the stores are, and what they save.",
        discussion: """
            Requests are those to hosts with a cache, since the start. A hit needed no origin, nor did a stale \
            response (max-stale, stale-while-revalidate, stale-if-error); revalidated means that the origin confirmed \
            what was stored. All three count as served from the cache.

            --json prints one object: requests (hit, miss, revalidated, stale, saved_bytes, hit_ratio, left out \
            before the first request), stores, a list with store (memory, disk), bytes, limit, responses; origins, \
            the 10 with the most bytes, each with origin, responses, bytes; entries, how many entries have a cache.
            """)

    @OptionGroup var options: TaskOptions

    func run() throws {
        let report: CacheReport = try options.proxy().ask(.get, "/cache")
        Standard.output(options.json ? JSONText.of(report) : report.text)
    }
}

struct CacheShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show what is stored for a URL, for whom, and whether it is fresh.",
        discussion: """
            The URL is taken with its query, and shown without it. Of the fields that Vary names, values of cookies \
            and credentials, and of fields that may hold some, are never shown. If nothing is stored, it says why \
            if that is known.

            --json prints one object: url, store and shared (what the entry says), refusal (why nothing is stored); \
            responses, a list with store, owner (everybody, user, account), user, owner_name, status, bytes, first, \
            last and complete (of a part), vary (a list with name, value, hidden), received, age, lifetime, basis \
            (s-maxage, max-age, expires, heuristic, none), fresh_for (0 or less: stale for so long), no_cache, \
            validator, answer (what a GET gets: served, served-stale, confirmed, fetched, policy-changed, \
            verdict-ended); others (stored with other queries or ports, or over the other scheme); objection and \
            objection_time (why the last response wasn't stored). Times are in Unix seconds.
            """)

    @OptionGroup var options: TaskOptions
    @Argument(help: ArgumentHelp("The URL.", valueName: "url")) var url: String

    func validate() throws { _ = try CacheArgument.url(url) }

    func run() throws {
        let target = CacheArgument.target(ofResponsesFor: try CacheArgument.url(url))
        let stored: StoredResponses = try options.proxy().ask(.get, target)
        Standard.output(options.json ? JSONText.of(stored) : stored.text)
        if stored.responses.isEmpty { throw CommandFailure(code: 1) }
    }
}

struct CachePurgeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Remove what is stored for a host, a URL, or everything.",
        discussion: """
            A host matches on every port unless one is given, over http and https; a URL matches exactly as written, \
            with its query. Responses of all users are removed. The log records it (cache.purge).

            --json prints one object: removed, the number of responses.
            """)

    @OptionGroup var options: TaskOptions
    @Argument(help: ArgumentHelp("A host or a URL.", valueName: "host|url"), completion: HostCompletion.kind)
    var what: String?
    @Flag(help: "Everything.") var all = false

    func validate() throws { _ = try query() }

    private func query() throws -> String {
        switch (what, all) {
        case (nil, false):
            throw ValidationError(
                "say what to remove: a host (example.com), a URL (https://example.com/file), or --all for everything")
        case (_?, true): throw ValidationError("--all is everything: write it alone, or the host or URL alone")
        case (nil, true): return "all"
        case (let what?, false): return try CacheArgument.query(what)
        }
    }

    func run() throws {
        let purge: CachePurge = try options.proxy().ask(.post, "/cache/purge?\(try query())")
        Standard.output(options.json ? JSONText.of(purge) : "removed: \(Count(purge.removed, "response"))")
        guard purge.removed == 0, let what else { return }
        Standard.error(
            "pinproxy: nothing was stored for \(ShownText(what)); "
                + "pinproxy cache shows the hosts, and pinproxy cache show URL says why")
    }
}
