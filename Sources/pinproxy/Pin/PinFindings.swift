internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

/// The findings of `pinproxy pin`: a chain or a key, and its pins.
struct PinFindings {
    /// Why there is no entry to paste, in the proxy's words.
    private var problem: Rehearsal.Answer?
    /// Warnings for standard error.
    private(set) var warnings: [String] = []

    private let host: Rehearsal.Host?
    /// The file that the keys are from; nil: a connection.
    private let file: String?
    private let isVerified: Bool
    private var connection: Rehearsal.Connection?
    /// The contact with a refused origin.
    private var contact: OriginContact?
    private var chain: [CertificateFacts] = []
    private var pattern: String?
    private var pins: [PinEntryText.Line] = []
    private let now: UnixTime

    // MARK: A host

    init(host: Rehearsal.Host, _ ending: Rehearsal.Ending, at now: UnixTime) {
        self.host = host
        self.now = now
        file = nil
        switch ending {
        case .success(let connection) where connection.verdict?.chain != nil:
            self.connection = connection
            isVerified = true
            pattern = Self.pattern(for: host)
            chain = connection.verdict?.chain.map { CertificateFacts.of($0, at: now) } ?? []
            pins = Self.pins(of: chain, isInUse: true)
        case .success:
            isVerified = false
            problem = Rehearsal.Answer(.local("no chain was verified"), for: host)
        case .failure(let failure):
            isVerified = false
            problem = Rehearsal.Answer(failure, for: host)
            contact = failure.contact
            if case .refused(let verdict, _) = failure {
                chain = CertificateFacts.of(verdict.presented, at: now)
            }
        }
    }

    /// Omits the default port: the entry then applies to all ports.
    private static func pattern(for host: Rehearsal.Host) -> String {
        host.port == 443 ? host.name : "\(host)"
    }

    /// The leaf's key, and the issuer's, which still matches after the leaf's changes.
    /// - Parameter isInUse: the host presents the chain now; otherwise it is a file's, perhaps for later.
    private static func pins(of chain: [CertificateFacts], isInUse: Bool) -> [PinEntryText.Line] {
        guard let leaf = chain.first else { return [] }
        let role = isInUse ? "in use: the leaf's key" : "the leaf's key"
        var pins = [PinEntryText.Line(pin: leaf.pin, remark: "\(role), \(leaf.key) (\(leaf.subject))")]
        if chain.count > 1, chain[1].pin != leaf.pin {
            pins.append(
                .init(pin: chain[1].pin, remark: "backup: its issuer's key, \(chain[1].key) (\(chain[1].subject))"))
        }
        return pins
    }

    // MARK: A file

    init(file path: String, contents: KeyFile, host: Rehearsal.Host?, at now: UnixTime) {
        self.host = host
        self.now = now
        file = path
        isVerified = false
        pattern = host.map(Self.pattern)
        switch contents {
        case .certificates(let certificates):
            chain = CertificateFacts.of(
                PresentedChain(leaf: certificates[0], rest: Array(certificates.dropFirst())), at: now)
            pins = Self.pins(of: chain, isInUse: false)
            if host == nil {
                pattern = certificates[0].dnsNames.lazy.compactMap { try? HostPattern($0).description }.first
                if pattern == nil {
                    warnings.append("\(path) names no host: name one (pinproxy pin HOST --from FILE), or use --lines")
                }
            }
            if let leaf = chain.first, leaf.daysLeft < 0 { warnings.append("\(path): expired \(leaf.notAfter)") }
        case .publicKey(let key): pins = [Self.pin(of: key, "the public key")]
        case .request(let request):
            let subject = request.subject.isEmpty ? "no subject" : request.subject.printable
            pins = [Self.pin(of: request.publicKey, "the key of a signing request (\(subject))")]
        case .privateKey(let key, let isOpen):
            pins = [Self.pin(of: key, "the public half of a private key")]
            if isOpen {
                warnings.append("\(path): other users can read the private key; chmod 600 \(path)")
            }
        }
    }

    private static func pin(of key: PublicKey, _ what: String) -> PinEntryText.Line {
        .init(pin: "sha256/\(key.spkiSHA256.base64)", remark: "\(what), \(key.keyDescription)")
    }

    // MARK: For people

    /// The lines of the pins alone, for an existing entry.
    var lines: PinEntryText { PinEntryText(pattern: nil, remarks: [], pins: pins) }

    var entry: PinEntryText { PinEntryText(pattern: pattern, remarks: remarks, pins: pins) }

    private var remarks: [String] {
        let source = file.map { "\($0.printable), read" } ?? "\(host?.description ?? ""), seen"
        var lines = ["\(source) \(CalendarDate(now))\(over)"]
        if !chain.isEmpty {
            lines += ["", isVerified ? "The verified chain:" : "As in the file, NOT VERIFIED:"]
            lines += chain.flatMap { $0.lines }.map { "  " + $0 }
        }
        lines += ["", isVerified ? Self.advice : Self.fileAdvice]
        if pins.count < 2, pattern != nil { lines.append(Self.noBackup) }
        return lines + [""]
    }

    private var over: String {
        guard let connection, let version = connection.version else { return "" }
        return " at \(connection.address), \(version) \(connection.cipher ?? "")"
    }

    private static let advice =
        "Compare the pins with a second source (another network, the people who run the host) before you trust them."
    private static let fileAdvice =
        "A pin accepts a key, no matter who holds it: make sure that the file is the right one."
    private static let noBackup =
        "There is no backup pin: keep a spare key (openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256) "
        + "and add its pin (pinproxy pin --from FILE)."

    /// Why there is no entry to paste, with the server's chain, so that the user can see what is wrong with it.
    var complaint: String? {
        guard let problem else { return nil }
        return ("\(problem)".printableLines + unverified).joined(separator: "\n")
    }

    private var unverified: [String] {
        guard !chain.isEmpty else { return [] }
        return ["", "What the server sent, NOT VERIFIED (don't pin it without a second source):"]
            + chain.flatMap { $0.lines }.map { "  " + $0 }
    }

    // MARK: For programs

    var json: String {
        JSONText.of(
            Report(
                host: host?.name, port: host?.port, file: file, verified: isVerified,
                address: connection?.address ?? contact.map { "\($0.address)" },
                tlsVersion: (connection?.version ?? contact?.tls?.version)?.description,
                cipher: connection?.cipher ?? contact?.tls?.cipher, match: pattern, chain: chain,
                pins: pins, error: problem?.title, details: problem?.text))
    }

    private struct Report: Encodable {
        let host: String?
        let port: UInt16?
        let file: String?
        let verified: Bool
        let address: String?
        let tlsVersion: String?
        let cipher: String?
        let match: String?
        let chain: [CertificateFacts]
        let pins: [PinEntryText.Line]
        let error: String?
        let details: String?
    }
}

/// An entry for pins.yaml, to review and paste below `hosts:`.
struct PinEntryText {
    struct Line: Encodable {
        let pin: String
        /// The remark on what it pins.
        let remark: String
    }

    /// Nil if no host was named: then only the lines of the pins are printed.
    var pattern: String?
    /// Observations and advice, each a line of a comment.
    var remarks: [String]
    var pins: [Line]
    /// These are omitted if they are the default.
    var action = HostAction.intercept
    var enforcement = Enforcement.enforce
    /// The entry that decides for the host now; its other keys are copied.
    var wildcard: HostEntry?
    /// The other keys, one line each, indented like keys.
    var more: [String] = []

    /// Indented like the entries of `hosts:` in the file that comes with the proxy.
    var yaml: String {
        var lines = remarks.map { $0.isEmpty ? "  #" : "  # \($0)" }
        if let pattern {
            lines.append("  - match: \(Self.quoted(pattern))")
            if action != .intercept { lines.append("    action: \(action.rawValue)") }
            lines.append("    pinning: public-key")
            if enforcement != .enforce { lines.append("    enforcement: \(enforcement.rawValue)") }
            lines.append("    pins:")
        }
        lines += pins.map { "      - \($0.pin)   # \($0.remark)" }
        lines += more.map { "    " + $0 }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A wildcard would be an alias in YAML, a bracket a list, and a name of one label may be a word such as null.
    private static func quoted(_ pattern: String) -> String {
        let isPlain = pattern.first?.isLetter == true && pattern.contains(".")
        return isPlain ? pattern : "\"\(pattern)\""
    }
}
