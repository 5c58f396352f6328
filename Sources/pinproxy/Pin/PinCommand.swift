internal import ArgumentParser
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

struct PinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin", _superCommandName: Pinproxy.name,
        abstract: "Show the keys of a host's chain as an entry for the pin file.",
        discussion: """
            Connects as the proxy would, with the configuration's trust but without pins, and prints \
            an entry to be pasted below hosts: in pins.yaml: the leaf's key, and its issuer's as the \
            backup. The chain is above it in comments. --lines prints the pins alone, to be pasted \
            below pins: of an existing entry. No entry is printed if the chain doesn't \
            verify; the exit code is then 1.

            Compare the keys with a second source before you trust them (another network, the people \
            who run the host): if somebody is between you and the host, the keys that you see are \
            theirs.

            With --from no connection is made: the pins are those of a certificate, a public key, a private key (only \
            its public half is used) or a signing request, in PEM or DER. Without a HOST the certificate's own name is \
            used; for a key only the line of its pin is printed.

            With --via the connection goes through an HTTP proxy, by CONNECT: one in another network shows what \
            others see of the host. If the keys are the same there, the host has changed them. The proxy's user and \
            password are read from a file (--via-credentials), since all users can see a command's arguments.

            --json prints one object: host, port, file, verified, address, tls_version, cipher, match; \
            chain, a list with depth, role, subject, issuer, serial, not_before, not_after, days_left, key, \
            pin, fingerprint; pins, a list with pin, remark; error and details where there is no \
            verified chain.

            Examples:
              pinproxy pin api.example.com
              pinproxy pin api.example.com >> config/pins.yaml
              pinproxy pin api.example.com:8443 --json
              pinproxy pin api.example.com --via http://proxy.example.net:3128
              pinproxy pin --from backup.key
              pinproxy pin --from new-chain.pem --lines
            """)

    @OptionGroup var options: ConfigurationOptions

    @Argument(
        help: ArgumentHelp("The host; the port is 443 if none is given.", valueName: "host[:port]"),
        completion: HostCompletion.kind)
    var host: String?

    @Option(help: ArgumentHelp("Take the keys from a file instead.", valueName: "file"), completion: .file())
    var from: String?

    @Option(
        help: ArgumentHelp("Connect through this proxy, http://HOST:PORT.", valueName: "proxy"))
    var via: String?
    @Option(
        help: ArgumentHelp("A file with the proxy's USER:PASSWORD.", valueName: "file"), completion: .file())
    var viaCredentials: String?

    @Flag(help: "Print only the lines of the pins, for an existing entry.") var lines = false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if host == nil, from == nil { throw ValidationError("A host is missing: pinproxy pin HOST[:PORT]") }
        if let host { _ = try Rehearsal.Host(argument: host) }
        if from != nil, via != nil { throw ValidationError("--from makes no connection, and --via is for one") }
        if via == nil, viaCredentials != nil { throw ValidationError("--via-credentials is for --via") }
        if let via { _ = try ViaProxy.parse(via, credentials: nil) }
    }

    func run() throws {
        let host = try host.map { try Rehearsal.Host(argument: $0) }
        if let from {
            try show(PinFindings(file: from, contents: try KeyFile.read(from), host: host, at: Clock.now))
        } else if let host {
            try show(try live(host))
        }
    }

    private func live(_ host: Rehearsal.Host) throws -> PinFindings {
        let snapshot = try options.loadIfPresent()
        let act =
            snapshot.map { Rehearsal.Decision(host, in: $0).actWithoutPins }
            ?? .secure(SecurityPolicy(), nil, HTTPProtocol.usual)
        let proxy = try via.map {
            try ViaProxy.parse($0, credentials: try viaCredentials.map(ViaProxy.credentials(from:)))
        }
        let ending = try Rehearsal(snapshot, via: proxy).play(host, act)
        return PinFindings(host: host, ending, at: Clock.now)
    }

    private func show(_ findings: PinFindings) throws {
        for warning in findings.warnings { Standard.error("pinproxy: \(warning)") }
        if json {
            Standard.output(findings.json)
            if findings.complaint != nil { throw CommandFailure(code: 1) }
        } else if let complaint = findings.complaint {
            throw CommandFailure(complaint)
        } else {
            Standard.output(lines ? findings.lines.yaml : findings.entry.yaml)
        }
    }
}
