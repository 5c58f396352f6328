import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTransport

/// Challenges answered from configured credentials (RFC 9110 section 11); unused without a rule that has any.
extension Exchange {
    /// The changes to the request's head by rules, and by the answer to a challenge.
    func requestEdits() -> HeadEdits {
        var edits = rules?.edits ?? HeadEdits()
        if let itinerary { edits.append(authorization(for: itinerary)) }
        return edits
    }

    /// The answer to the challenge received, or to an expected one.
    private func authorization(for itinerary: Itinerary) -> HeadEdits {
        var edits = HeadEdits()
        guard let credentials = credentials(for: itinerary) else { return edits }
        if itinerary.answer == nil {
            itinerary.answer = session.challenges.authorization(
                for: itinerary.methodName, target: itinerary.url.target, at: itinerary.url.origin,
                credentials: credentials)
        }
        if let answer = itinerary.answer {
            edits.append(.set(String(decoding: answer.value, as: UTF8.self)), "Authorization")
        }
        return edits
    }

    /// The authorization for sending it again, with its own nonce count.
    func freshAuthorization() -> HeadEdits {
        guard let itinerary else { return HeadEdits() }
        // Unless it answers a fresh challenge.
        if !itinerary.isDue { itinerary.answer = nil }
        itinerary.isDue = false
        return authorization(for: itinerary)
    }

    /// Credentials for the current hop's challenges; nil: the client's.
    private func credentials(for itinerary: Itinerary) -> AnsweringCredentials? {
        guard let rules, mayAnswer(itinerary) else { return nil }
        guard let ofRules = rules.session.credentials else {
            return itinerary.credentials.map { AnsweringCredentials($0, edition: nil) }
        }
        return ofRules.usable(at: itinerary.url.origin)
    }

    /// Not if the client sends credentials, and over http only if the rules allow it.
    private func mayAnswer(_ itinerary: Itinerary) -> Bool {
        guard rules?.request.authorization == nil, !itinerary.carriesCredentials else { return false }
        return itinerary.url.isSecure || rules?.session.credentials?.allowsHTTP == true
    }

    /// Answers the 401 by a new request, if possible.
    func challenge(_ itinerary: Itinerary) -> ExchangeState.Head? {
        guard mayAnswer(itinerary), state.allows(.challenge, resendable: true) else { return nil }
        let hasBody = itinerary.keepsBody && itinerary.request.head.bodyLength != .none
        guard !hasBody || canResend else { return nil }
        var challenges: [Challenge] = []
        upstream?.withResponse { view in
            for field in view.head.fields where field.id == .wwwAuthenticate {
                Challenge.append(of: view.bytes.extracting(field.value.offsets), to: &challenges)
            }
        }
        if rules?.session.credentials == nil, !itinerary.hasAskedForCredentials {
            itinerary.credentials = downstream.guide.credentials(for: challenges, at: itinerary.url)
            guard !downstream.guide.isDeciding else { return nil }
            itinerary.hasAskedForCredentials = true
        }
        guard let credentials = credentials(for: itinerary) else { return nil }
        let reply = session.challenges.reply(
            to: challenges, method: itinerary.methodName, target: itinerary.url.target, at: itinerary.url.origin,
            credentials: credentials, previous: itinerary.answer)
        switch reply {
        case .answer(let answer):
            itinerary.next = .answer(answer)
            return .askAgain(.challenge)
        case .refused(let realm):
            session.hooks.refusedCredentials?(
                record,
                RefusedCredentials(origin: itinerary.url.origin, user: credentials.credentials.user, realm: realm))
            return nil
        case .none: return nil
        }
    }

    /// The origin's final response was not a 401.
    func acceptedAnswer(of itinerary: Itinerary) {
        guard let answer = itinerary.answer, let credentials = credentials(for: itinerary) else { return }
        var info: [UInt8]?
        upstream?.withResponse { view in
            for field in view.head.fields
            where field.id == .other && field.name.text(in: view.bytes).lowercased() == "authentication-info" {
                info = [UInt8](copying: view.bytes.extracting(field.value.offsets).bytes)
            }
        }
        session.challenges.accepted(
            answer, target: itinerary.url.target, at: itinerary.url.origin, credentials: credentials, info: info)
    }
}
