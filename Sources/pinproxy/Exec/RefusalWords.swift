internal import FoundationEssentials
internal import Glibc
internal import PinproxyClients
internal import PinproxySecurity

/// The messages of `pinproxy exec` about a run. Texts of clients and origins are escaped.
struct RefusalWords {
    let command: String
    /// The options for configuration and state directory, as this command got them.
    let options: [String]
    var reach = Reach.everything

    /// The destinations that the command could reach besides the proxy.
    enum Reach {
        case everything
        /// `--isolated`
        case nothing
        /// `--transparent`: the proxy, if it didn't know of it.
        case nothingUnchecked
    }

    /// - Parameter toldAlready: each refusal was reported when it first came.
    func lines(of account: RunAccount, toldAlready: Bool) -> [String] {
        var lines = account.refused.compactMap { refused -> String? in
            if !toldAlready { return line(of: refused.refusal, count: refused.count) }
            guard refused.count > 1 else { return nil }
            return
                "pinproxy: \(refused.refusal.host.map { "\($0.printable): " } ?? "")"
                + "refused \(refused.count) times in all"
        }
        if account.unlistedHere > 0 {
            lines.append(
                "pinproxy: and \(Count(account.unlistedHere, "more connection")) that couldn't be redirected to the "
                    + "proxy")
        }
        if account.unlisted > 0 {
            lines.append("pinproxy: and \(Count(account.unlisted, "more refusal")); the proxy's log has them")
        }
        if account.isIncomplete {
            lines.append(
                """
                pinproxy: the proxy ended, or was cut off, during the run: there may have been more refusals; its log \
                has them
                """
            )
        } else if account.isKnown, account.requests == 0, account.refused.isEmpty {
            lines.append(
                "pinproxy: \(command.printable) sent nothing through the proxy as this run: it made no request, or "
                    + "\(otherwise), or asked as another user")
        }
        return lines
    }

    private var otherwise: String {
        switch reach {
        case .everything: "bypassed the proxy unchecked"
        case .nothing: "has no proxy support, so it reached nothing (--transparent redirects it)"
        case .nothingUnchecked: "none that can be redirected to it (TCP to ports 443 and 80)"
        }
    }

    /// One refusal, with the command that says more.
    func line(of refusal: RunRefusal, count: Int) -> String {
        let times = count > 1 ? " (\(count) times)" : ""
        let cause = refusal.cause.printable(longest: 600)
        guard let host = refusal.host?.printable else { return "pinproxy: \(cause)\(times)" }
        let options = (refusal.options ?? []).map { " " + ExplainCommandLine.quoted($0.printable) }.joined()
        let said = "\(cause)\(times)"
        return "pinproxy: \(host): \(said)\(said.hasSuffix(".") ? "" : ".") Details: run \(explain) \(host)\(options)"
    }

    private var explain: String {
        (["pinproxy", "explain"] + options).map(ExplainCommandLine.quoted).joined(separator: " ")
    }
}
