import PinproxyTLS

extension Refusal {
    /// What failed, over several lines, with the chain's pins ready to paste, the configured pins, and advice.
    package var details: String {
        var text = title + "\n"
        switch reason {
        case .trust(let failure):
            text += "  \(failure.message)\n"
            text += chainText()
            text += pinsText()
            text += section("What to do", [failure.reason.advice])
        case .pinnedAnchors(let failure):
            text += "  The chain doesn't lead to a pinned certificate: \(failure.message)\n"
            text += chainText()
            text += pinsText()
            text += section("What to do", pinAdvice)
        case .pinMismatch:
            text += chainText()
            text += pinsText()
            text += section("What to do", pinAdvice)
        case .contradiction(let contradiction):
            text += "  \(contradiction)\n"
            text += chainText()
        case .status(let failure):
            text += "  \(failure)\n"
            text += chainText()
            text += section("What to do", [failure.advice])
        case .transparency(let failure):
            text += "  \(failure)\n"
            text += section(
                "Timestamps",
                failure.result.timestamps.isEmpty ? ["none"] : failure.result.timestamps.map(\.description))
            text += chainText()
            text += section(
                "What to do",
                [
                    "Bring the file that ct_log_list names up to date: logs are added and retired every year. If it "
                        + "is, the certificate was not published where it should be: tell the server's operator, and "
                        + "don't work around it."
                ])
        case .expired(let expiry):
            text += "  The host's pins expired \(CalendarDate(expiry.date)), and on_expiry is deny\n"
            text += chainText()
            text += pinsText()
            text += section(
                "What to do",
                [
                    "Check that the pins are still right (pinproxy pin \(host.map { "\($0)" } ?? "HOST")), "
                        + "then set a later expires in pins.yaml, or remove the line. Then: pinproxy reload"
                ])
        }
        return text
    }

    /// The verified chain's pins, leaf first, as written in pin files.
    package var presentedPins: [String] {
        guard let chain else { return [] }
        return chain.certificates.prefix(Self.shown).enumerated()
            .filter { policy.position.admits(depth: $0.offset, of: chain) }.map { "\(pin(of: $0.element))" }
    }

    package var configuredPins: [String] { policy.pins.pins.map { "\($0)" } }

    private var pinAdvice: [String] {
        let fix =
            policy.mode == .certificate
            ? "If the operator confirms the new certificate, paste its line into the host's pins in pins.yaml, or "
                + "save it as a file and name that."
            : "If the operator confirms the new key, paste its line into the host's pins in pins.yaml."
        var lines = [
            "Compare with what the server's operator publishes, or with what another network sees, before "
                + "changing anything: an attacker on this network would look the same.",
            fix + " Then: pinproxy reload",
        ]
        if let pin = pinOutsidePosition {
            lines.insert(
                "\(pin) is in the chain, but position: \(policy.position.rawValue) does not allow it there.", at: 0)
        } else if let pin = appendedPin {
            lines.insert(
                "\(pin) was sent by the server, but is not part of the chain that verifies, so it proves nothing.",
                at: 0)
        }
        return lines
    }

    private var pinOutsidePosition: Pin? {
        guard policy.position != .any else { return nil }
        return chain.flatMap { policy.pins.match(in: $0, position: .any)?.pin }
    }

    private var appendedPin: Pin? {
        presented.rest.lazy.prefix(Self.shown).compactMap { self.policy.pins.pin(for: $0, depth: 1) }.first
    }

    // MARK: Sections

    /// Certificates listed; a peer may send hundreds.
    private static let shown = 10

    private func chainText() -> String {
        if let chain {
            return section(
                "The verified chain, as pins ready to paste",
                lines(of: chain.certificates) { depth in
                    policy.position.admits(depth: depth, of: chain)
                        ? nil : "not the \(policy.position.rawValue), which position asks for"
                })
        }
        return section(
            "What the server sent, NOT VERIFIED (don't paste it without a second source)",
            lines(of: presented.certificates) { depth in
                depth == 0 || policy.mode != .publicKey || !policy.allowsInvalidCertificates
                    ? nil : "only the server's own key counts with allow_invalid_certificates"
            })
    }

    /// - Parameter hindrance: why no pin could match at a depth; such certificates become comments.
    private func lines(of certificates: [Certificate], hindrance: (Int) -> String?) -> [String] {
        var lines = certificates.prefix(Self.shown).enumerated().map { depth, certificate in
            let subject = certificate.subject.isEmpty ? "no subject" : certificate.subject
            let short = subject.count > 120 ? subject.prefix(120) + "…" : subject[...]
            return hindrance(depth).map { "# \(short): \($0)" } ?? "- \(pin(of: certificate))   # \(short)"
        }
        if certificates.count > Self.shown { lines.append("# and \(certificates.count - Self.shown) more") }
        return lines
    }

    private func pin(of certificate: Certificate) -> Pin {
        let kind: Pin.Kind =
            policy.mode == .certificate ? .certificate(certificate.sha256, nil) : .spki(certificate.spkiSHA256)
        return Pin(kind, origin: "")
    }

    private func pinsText() -> String {
        guard policy.mode != .none, !policy.pins.isEmpty else { return "" }
        let place = policy.position == .any ? "" : ", to be matched by the \(policy.position.rawValue)"
        return section(
            "Configured pins\(place)",
            policy.pins.pins.map { pin in
                pin.origin == pin.description ? "- \(pin)" : "- \(pin)   # \(pin.origin)"
            })
    }

    private func section(_ heading: String, _ lines: [String]) -> String {
        "  \(heading):\n" + lines.map { "    \($0)\n" }.joined()
    }
}
