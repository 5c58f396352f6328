internal import FoundationEssentials
internal import PinproxyDaemon
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// An incident with what differs from a chain that matched.
struct IncidentAccount: Encodable {
    let incident: Incident
    let comparison: ChainComparison
    let matched: MatchedChains.Chain?

    init(_ record: IncidentRecord) {
        incident = record.incident
        matched = record.matched
        comparison = ChainComparison(record.incident, with: record.matched?.certificates ?? [])
    }
}

/// The text output of `pinproxy incidents`. Texts of certificates are escaped: an attacker may have written them.
enum IncidentText {
    static func list(_ list: IncidentList, at now: UnixTime) -> String {
        guard !list.incidents.isEmpty else { return "no incident is known" }
        return list.incidents.map { incident in
            let state = incident.acknowledged == nil ? "open" : "acknowledged"
            return
                """
                \(incident.id.prefix(12))  \(state.padded(to: 12))  \(incident.place.printable): \
                \(incident.cause.printable) (\(counts(incident)), \(TimeDistance(from: now, to: incident.last)))
                """
        }.joined(separator: "\n")
    }

    private static func counts(_ incident: Incident) -> String {
        let counts = [
            incident.refused > 0 ? "\(Count(incident.refused, "connection")) refused" : nil,
            incident.reported > 0 ? "\(Count(incident.reported, "connection")) only reported" : nil,
        ]
        return counts.compactMap(\.self).joined(separator: ", ")
    }

    static func text(_ account: IncidentAccount, at now: UnixTime) -> String {
        let lines = facts(account.incident, at: now) + differences(account) + chain(account.incident, at: now)
        return (lines + matched(account.matched, at: now) + advice(account.incident)).joined(separator: "\n")
    }

    private static func row(_ label: String, _ text: String) -> String { label.padded(to: 12) + text }

    private static func facts(_ incident: Incident, at now: UnixTime) -> [String] {
        var lines = [
            row("incident", incident.id), row("host", incident.place.printable),
            row("cause", incident.cause.printable),
            row("entry", ([incident.entry, incident.location].compactMap(\.self).joined(separator: ", ")).printable),
            row("seen", "\(counts(incident)), from \(time(incident.first)) to \(time(incident.last))"),
        ]
        if incident.isOnlyReported { lines.append(row("", "let through by enforcement: report")) }
        if incident.merged {
            lines.append(
                row(
                    "",
                    """
                    the host has presented more than \(IncidentHistory.chainsPerHost) chains: this stands for all \
                    further ones, with the first of them
                    """))
        }
        let tls = [incident.tlsVersion, incident.cipher, incident.tlsGroup].compactMap(\.self)
        if !tls.isEmpty { lines.append(row("TLS", tls.joined(separator: ", ").printable)) }
        if let verification = incident.verification { lines.append(row("judged", verification.printable)) }
        for (index, address) in incident.addresses.enumerated() {
            let source = address.resolver.map { ", from \($0.printable)" } ?? ""
            lines.append(
                row(
                    index == 0 ? "address" : "",
                    "\(address.address.printable) (\(Count(address.count, "time")))\(source)"))
        }
        if incident.furtherAddresses > 0 {
            lines.append(row("", "\(Count(incident.furtherAddresses, "connection")) to further addresses"))
        }
        for (index, asker) in incident.askers.enumerated() {
            lines.append(row(index == 0 ? "asked by" : "", who(asker)))
        }
        if incident.furtherAskers > 0 {
            lines.append(row("", "\(Count(incident.furtherAskers, "connection")) for others"))
        }
        lines += incident.pins.enumerated().map { row($0.offset == 0 ? "pins" : "", $0.element.printable) }
        if incident.ocspResponse != nil { lines.append(row("stapled", "an OCSP response")) }
        if !incident.timestamps.isEmpty {
            lines.append(row("stapled", "\(Count(incident.timestamps.count, "certificate timestamp"))"))
        }
        if let acknowledged = incident.acknowledged {
            lines.append(row("ended", "\(time(acknowledged.time)), by \(acknowledged.by.printable)"))
        }
        return lines
    }

    private static func who(_ asker: Incident.Asker) -> String {
        let user = asker.user ?? asker.uid.map { "user \($0)" }
        let parts = [user, asker.program, asker.unit, asker.client].compactMap(\.self)
        return
            "\(parts.joined(separator: ", ").printable) (\(Count(asker.count, "time")), the last as task \(asker.task))"
    }

    private static func differences(_ account: IncidentAccount) -> [String] {
        let comparison = account.comparison
        return ["", "What differs from the last chain that matched: \(comparison.headline.printable)"]
            + comparison.lines.map { "  \($0.printable(longest: 400))" }
    }

    private static func chain(_ incident: Incident, at now: UnixTime) -> [String] {
        let certificates = incident.certificates
        guard let leaf = certificates.first else { return [] }
        let facts = CertificateFacts.of(PresentedChain(leaf: leaf, rest: Array(certificates.dropFirst())), at: now)
        let more =
            incident.omitted > 0 ? ["  \(Count(incident.omitted, "further certificate")) not kept"] : []
        return ["", incident.verified ? "The chain, which verifies:" : "The chain as presented, NOT VERIFIED:"]
            + facts.flatMap(\.lines).map { "  \($0)" } + more
    }

    private static func matched(_ matched: MatchedChains.Chain?, at now: UnixTime) -> [String] {
        guard let matched, let leaf = matched.certificates.first else { return [] }
        let rest = Array(matched.certificates.dropFirst())
        return [
            "",
            """
            The last chain that matched, from \(time(matched.first)) to \(CalendarDate(matched.last)), by \
            \(matched.pin.printable):
            """,
        ] + CertificateFacts.of(PresentedChain(leaf: leaf, rest: rest), at: now).flatMap(\.shortLines).map { "  \($0)" }
    }

    private static func advice(_ incident: Incident) -> [String] {
        let host = incident.place.printable
        return [
            "", "Compare with what another way shows: pinproxy pin \(host) --via http://PROXY:PORT",
            "Once it is explained: pinproxy incidents ack \(incident.id.prefix(12))",
        ]
    }

    private static func time(_ unix: UnixTime) -> String {
        Date(timeIntervalSince1970: TimeInterval(unix)).formatted(.iso8601)
    }

    /// One file for a colleague: text, PEM and JSON, each under its heading.
    static func file(_ account: IncidentAccount, at now: UnixTime) -> String {
        let matched = account.matched.map { "\n==== the last chain that matched, PEM ====\n" + $0.chain.joined() } ?? ""
        return
            """
            ==== incident ====
            \(text(account, at: now))

            ==== the chain, PEM ====
            \(account.incident.chain.joined())\(matched)
            ==== JSON ====
            \(JSONText.of(account))

            """
    }
}
