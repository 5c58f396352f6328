internal import ArgumentParser
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyDecoding
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession
internal import PinproxyTLS

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", _superCommandName: Pinproxy.name,
        abstract: "Explain what the policy does for a host, and why.",
        discussion: """
            Connects as the proxy would and prints the verdict (for a refusal, the text that a client gets), the entry \
            and the line that decide, the chain and each check. --verbose shows whole certificates, and all that each \
            check compared. Exits 0 if a request would be let through, 1 if not (with --response: if the response \
            would be passed on).

            It judges by the files, and says if they have changed since the running proxy read them. --live judges by \
            the configuration that is in force.

            To rehearse a rotation, --chain evaluates a chain on disk instead of the one the host presents (no \
            connection is made), and --at evaluates another day. Evidence that only a handshake brings (the TLS \
            version, a stapled OCSP response, timestamps sent with the chain) is then not checked.

            Session, request and response rules for the host are shown with their source: the defaults, the entry, or \
            one of their rules for some paths and methods. --path shows those that apply to one request, how the \
            exchange would be made, the request as it would be sent (secrets masked), what the response must be, and \
            what the cache would do with it; with --live also what the running proxy has stored for it.

            --response judges a stored response to that request, head and body as curl -i writes them: \
            whether it would be passed on, rewritten or refused, and why. No connection is made, and the \
            chain is judged only with --chain. Of several heads (redirects, 100 Continue) the last one counts.

            If an entry is only for some clients (clients), --client checks one, by what the kernel would say of its \
            connection: user=NAME, unit=UNIT and executable=PATH; what is left out is unknown. For a client that is \
            refused no connection is made.

            --json prints one object: host, port, at; entry (pattern, file, line; null: the defaults); \
            also_matching, a list of entries; clients (users, units, executables; left out if all may use the entry); \
            rollout (key, value, state: reported or enforced, text; enforced_since, matches, matched_days, place; left \
            out without enforce_from, enforce_after and stage); action; where there are any: rules, a list with key, \
            value, \
            source, file, line; path_rules, a list with source, path, methods, file, line; with --path: \
            request (method, path, ambiguous, matching as in path_rules, sent: method, target, headers, body, \
            convert_body, upgrade_insecure; base, where it goes if it is made with http:// and there is a base_url; \
            refusal if the rules refuse it); expected, where responses are judged \
            (status, content_types, serializers, remove_null_values, max_body, oversize, enforcement); with \
            --response: response (file, status, outcome: passed, rewritten, refused, reported or unjudged; reason, \
            finding, refusal, remark); cache, with --path (method, store, shared, stored, reason, remarks; with --live \
            also responses as pinproxy cache show --json has them); address, \
            resolved (addresses), resolver (where they are from), tls_version, cipher, tls_group; \
            offered_protocols, protocol (h2 or \
            http/1.1, \
            as the host chose by ALPN), extended_connect (whether it takes WebSockets over HTTP/2; left out if that is \
            unknown); \
            client_certificate (acceptable_issuers, shown, not_after; left out if the host requests none); \
            verified; chain \
            (as pinproxy pin --json has it); checks, a list with name, outcome (passed, failed, \
            reported, skipped) and lines; matched_pin, matched_depth; let_through (left out if no chain was judged); \
            reported; refusal \
            (status, title, details; null if let through).

            Examples:
              pinproxy explain api.example.com
              pinproxy explain api.example.com --live --verbose
              pinproxy explain api.example.com --chain new.pem --at 2027-06-30
              pinproxy explain api.example.com:8443 --json
              pinproxy explain api.example.com --path '/v2/users?page=1' --method POST
              pinproxy explain api.example.com --path /v2/users --response answer.txt
              pinproxy explain deploy.example.com --client user=build,unit=ci.service
            """)

    @OptionGroup var options: ConfigurationOptions

    @Argument(
        help: ArgumentHelp("The host; the port is 443 if none is given.", valueName: "host[:port]"),
        completion: HostCompletion.kind)
    var host: String

    @Option(
        help: ArgumentHelp("Evaluate the chain of a PEM file, leaf first, and don't connect.", valueName: "file"),
        completion: .file())
    var chain: String?

    @Option(
        help: ArgumentHelp(
            "Evaluate as on that day: 2027-06-30 or 2027-06-30T12:00:00Z.", valueName: "date"))
    var at: Instant?

    @Option(
        help: ArgumentHelp("Show the rules for a request with this path, written as in the request.", valueName: "path")
    )
    var path: String?

    @Option(
        help: ArgumentHelp("The method of that request; GET if none is given.", valueName: "method"),
        completion: .list(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]))
    var method: String?

    @Option(
        help: ArgumentHelp(
            "Judge the response of a file, stored with curl -i, to that request, and don't connect.",
            valueName: """
                file
                """),
        completion: .file())
    var response: String?

    @Option(
        help: ArgumentHelp(
            "Explain for this client: user=build,unit=ci.service,executable=/usr/bin/curl.", valueName: "client"))
    var client: String?

    @Flag(help: "Judge by the configuration that the running proxy has in force, not by the files.") var live = false
    @Flag(help: "Show whole certificates, and all that each check compared.") var verbose = false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        _ = try Rehearsal.Host(argument: host)
        _ = try request()
        _ = try asker()
    }

    private func asker() throws -> Rehearsal.Client? {
        do throws(Rehearsal.ClientError) {
            return try client.map { text throws(Rehearsal.ClientError) in try Rehearsal.Client(text) }
        } catch {
            throw ValidationError("--client \(error)")
        }
    }

    private func request() throws -> RuleAccount.Request? {
        guard let path else {
            if method != nil { throw ValidationError("--method needs --path, the path of the request") }
            if response != nil {
                throw ValidationError(
                    "--response needs --path, the path of the request that was answered, e.g. --path /")
            }
            return nil
        }
        guard path.hasPrefix("/") else {
            throw ValidationError("\(path.debugDescription) is not a path: it begins with a slash, as /v2/users does")
        }
        do throws(InvalidValue) {
            return RuleAccount.Request(method: try MethodName(method ?? "GET").description, path: path)
        } catch {
            throw ValidationError("\(error)")
        }
    }

    func run() throws {
        let snapshot = try live ? options.loadInForce() : options.load()
        if !live {
            options.remarkChanges(
                since: snapshot, advice: " (the files are judged here; --live judges by what is in force)")
        }
        let stored = try response.map { file throws(CommandFailure) in try StoredResponse(file: file) }
        let instant = at?.time
        let host = try Rehearsal.Host(argument: host)
        if let own = TestHostAccount(host) { return try own.tell(json: json) }
        let decision = Rehearsal.Decision(host, in: snapshot, client: try asker())
        let rehearsal = try Rehearsal(snapshot, at: instant)
        let now = instant ?? Clock.now
        let ending: Account.Ending
        if let objection = decision.objection {
            ending = .notAdmitted(objection)
        } else if let chain {
            let presented = try PresentedChain(file: chain)
            ending = .given(decision.explain(presented, anchors: rehearsal.upstream.anchors, at: now), file: chain)
        } else if let act = decision.act {
            ending = stored != nil ? .untried : .tried(try rehearsal.play(host, act))
        } else {
            ending = .denied
        }
        let request = try request()
        let cache = try request.map { request in
            let stored = live ? try options.storedResponses(for: CacheAccount.url(host, request)) : nil
            return CacheAccount(host, request, in: snapshot, client: try asker(), live: stored, at: now)
        }
        let account = Account(
            decision, ending, others: snapshot.hosts.others(matching: host, than: decision.entry),
            rules: RuleAccount(
                decision, in: snapshot, request: request, response: stored, cache: cache,
                // A peer's data is decoded in a separate process, as in the proxy.
                bodies: stored == nil ? ThreadExecutor() : try ProcessExecutor()),
            rollout: RolloutAccount(decision.entry, in: snapshot, at: now), anchors: rehearsal.upstream.anchors,
            at: now, isClockSet: instant != nil)
        Standard.output(json ? account.json : account.text(Palette.standardOutput, isVerbose: verbose))
        if !account.isLetThrough || account.rules.isRefused { throw CommandFailure(code: 1) }
    }
}

extension PresentedChain {
    /// A chain on disk: PEM with the leaf first, or one certificate in DER.
    fileprivate init(file path: String) throws {
        switch try KeyFile.read(path) {
        case .certificates(let certificates):
            self.init(leaf: certificates[0], rest: Array(certificates.dropFirst()))
        case .publicKey, .privateKey, .request: throw CommandFailure("\(path): it contains no certificate")
        }
    }
}

extension HostTable<HostEntry> {
    /// Entries that would decide for the host without `entry`, in order.
    fileprivate func others(matching host: Rehearsal.Host, than entry: HostEntry?) -> [HostEntry] {
        entries.filter { $0.pattern.matches(host: host.name, port: host.port) && $0.value !== entry }.map(\.value)
    }
}

/// The account of a name that the proxy answers for itself. Only the running proxy could connect to it.
struct TestHostAccount: Encodable {
    let host: String
    let port: UInt16
    let letThrough: Bool
    let testHost = true

    /// Nil for any other host.
    init?(_ host: Rehearsal.Host) {
        guard let own = TestHost(host.name) else { return nil }
        self.host = host.name
        port = host.port
        letThrough = own == .right
    }

    func tell(json: Bool) throws {
        Standard.output(json ? JSONText.of(self) : text)
        if !letThrough { throw CommandFailure(code: 1) }
    }

    private var text: String {
        """
        host      \(host):\(port)
        entry     the proxy's own, with \(letThrough ? "a right" : "a wrong") pin: it answers for this name itself, so \
        that programs \
        can be tried (pinproxy doctor)

        \(letThrough ? "Let through" : "Refused: a client gets 502 Certificate pinning failure for \(host)")
        """
    }

    private enum CodingKeys: CodingKey { case host, port, letThrough, testHost }
}
