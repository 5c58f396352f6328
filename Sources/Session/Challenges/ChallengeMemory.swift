package import PinproxyHTTPWire
import PinproxySerialization
import Synchronization

/// Answers Basic (RFC 7617) and Digest (RFC 7616) challenges from configured credentials. Later requests of the same
/// protection space carry an accepted answer from the start. A refused password is sent once, so the account isn't
/// locked.
///
/// Shared by all workers; slow work is done outside of the lock. ``mostSpaces`` bounds the origins;
/// ``Space/mostNonces``, ``Space/mostFolders`` and ``Space/mostRefusals`` bound each, keeping the last ones.
///
/// Per exchange: ``authorization(for:target:at:credentials:)`` before sending; on 401
/// ``reply(to:method:target:at:credentials:previous:)``; on any other final response
/// ``accepted(_:target:at:credentials:info:)``.
package final class ChallengeMemory: Sendable {
    static let mostSpaces = 256

    private struct Key: Hashable {
        let origin: RequestURL.Origin
        let credentials: AnsweringCredentials
    }

    private struct Memory {
        var spaces: [Key: Space] = [:]
        var clock: UInt64 = 0

        /// Looks a space up, which counts as a use.
        mutating func with<Result>(_ key: Key, _ body: (inout Space) -> Result) -> Result {
            clock += 1
            if spaces[key] == nil, spaces.count >= ChallengeMemory.mostSpaces { forgetOldest() }
            spaces[key, default: Space()].lastUse = clock
            return body(&spaces[key]!)
        }

        /// A quarter at a time, so that it isn't done for every new origin.
        private mutating func forgetOldest() {
            let oldest = spaces.sorted { $0.value.lastUse < $1.value.lastUse }.prefix(ChallengeMemory.mostSpaces / 4)
            for (key, _) in oldest { spaces[key] = nil }
        }
    }

    private let memory = Mutex(Memory())

    package init() {}

    /// Known pairs of origin and credentials.
    package var spaceCount: Int { memory.withLock { $0.spaces.count } }

    /// The authorization of a request before any challenge; nil: none was accepted there yet. Method and target as
    /// sent.
    package func authorization(
        for method: [UInt8], target: [UInt8], at origin: RequestURL.Origin, credentials: AnsweringCredentials
    ) -> ChallengeAnswer? {
        let use = memory.withLock { memory -> Space.Use? in
            let key = Key(origin: origin, credentials: credentials)
            // A look-up alone creates no entry.
            guard memory.spaces[key] != nil else { return nil }
            return memory.with(key) { $0.unasked(for: target, at: origin) }
        }
        return use.flatMap { write($0, credentials.credentials, method, target, isUnasked: true, number: 0) }
    }

    package enum Reply: Sendable {
        case answer(ChallengeAnswer)
        /// No answer is possible, or these credentials were refused before.
        case none
        /// Newly refused: report it once.
        case refused(realm: [UInt8])
    }

    /// The strongest possible answer to a 401, up to ``ChallengeAnswer/most`` times, unless its credentials were
    /// refused. `challenges` are those of all WWW-Authenticate fields, `previous` the refused request's answer.
    package func reply(
        to challenges: [Challenge], method: [UInt8], target: [UInt8], at origin: RequestURL.Origin,
        credentials: AnsweringCredentials, previous: ChallengeAnswer?
    ) -> Reply {
        let key = Key(origin: origin, credentials: credentials)
        if let previous { forget(previous, target, key) }
        let number = (previous?.number ?? 0) + 1
        guard number <= ChallengeAnswer.most else { return .none }
        let open = memory.withLock { $0.spaces[key] }?.open(challenges) ?? challenges
        let answer = answer(to: open, method: method, target: target, key, previous: previous, number: number)
        if let answer { return .answer(answer) }
        guard let previous, credentials.edition != nil else { return .none }
        // The credentials sent unasked count for the realm of this challenge.
        let isDigest = !previous.proof.isBasic
        let asking = challenges.first { isDigest ? $0.scheme == "digest" : $0.isAnswerableBasic }
        let realm = previous.isUnasked ? asking?.realm ?? previous.realm : previous.realm
        return memory.withLock { $0.with(key) { $0.refused(asDigest: isDigest, in: realm) } }
            ? .refused(realm: realm) : .none
    }

    private func answer(
        to challenges: [Challenge], method: [UInt8], target: [UInt8], _ key: Key, previous: ChallengeAnswer?,
        number: Int
    ) -> ChallengeAnswer? {
        let credentials = key.credentials.credentials
        // The first of the strongest: a server lists them in the order of its preference.
        let digests = challenges.compactMap(DigestChallenge.init)
        let strength = digests.map(\.digest.strength).max()
        guard let strongest = digests.first(where: { $0.digest.strength == strength }) else {
            // A server that refused a digest doesn't get the password itself, unless the digest was a guess of ours.
            let isRefused = previous.map { !$0.isUnasked || $0.proof.isBasic } ?? false
            guard !isRefused, let basic = challenges.first(where: \.isAnswerableBasic) else { return nil }
            return write(.basic(basic.realm), credentials, method, target, isUnasked: false, number: number)
        }
        if case .digest(let refused) = previous?.proof {
            // The password is wrong, unless the server says that only the nonce was, or the nonce was a guess of ours.
            let isAnother = previous?.isUnasked == true && !strongest.isSameTry(as: refused)
            guard strongest.isStale || isAnother else { return nil }
        } else if let previous, !previous.isUnasked {
            return nil
        }
        let use = memory.withLock { $0.with(key) { $0.asked(by: strongest) } }
        return use.flatMap { write($0, credentials, method, target, isUnasked: false, number: number) }
    }

    /// The request that carried an answer got a final response other than 401.
    /// - Parameter info: Authentication-Info (RFC 7616 section 3.5), with the next nonce.
    package func accepted(
        _ answer: ChallengeAnswer, target: [UInt8], at origin: RequestURL.Origin, credentials: AnsweringCredentials,
        info: [UInt8]?
    ) {
        let key = Key(origin: origin, credentials: credentials)
        switch answer.proof {
        case .basic: memory.withLock { $0.with(key) { $0.accepted(folderOf: target, in: answer.realm) } }
        case .digest(let challenge):
            let next = info.flatMap { AuthParameters.parse($0.span)?["nextnonce"] }
                .flatMap { $0.isEmpty || $0.count > DigestChallenge.longest ? nil : challenge.with(nonce: $0) }
            memory.withLock { $0.with(key) { $0.accepted(challenge, next: next) } }
        }
    }

    private func forget(_ answer: ChallengeAnswer, _ target: [UInt8], _ key: Key) {
        memory.withLock { memory in
            guard memory.spaces[key] != nil else { return }
            memory.with(key) { space in
                switch answer.proof {
                case .basic: space.refused(at: target)
                case .digest(let challenge): space.refused(challenge)
                }
            }
        }
    }

    private func write(
        _ use: Space.Use, _ credentials: Credentials, _ method: [UInt8], _ target: [UInt8], isUnasked: Bool, number: Int
    ) -> ChallengeAnswer? {
        switch use {
        case .basic(let realm):
            ChallengeAnswer(
                value: Array(credentials.basicAuthorization.text.utf8), proof: .basic, realm: realm,
                isUnasked: isUnasked,
                number: number)
        case .digest(let nonce):
            nonce.challenge.authorization(
                credentials, method: method, target: target, count: nonce.count, clientNonce: nonce.clientNonce,
                session: nonce.session
            ).map {
                ChallengeAnswer(
                    value: $0, proof: .digest(nonce.challenge), realm: nonce.challenge.realm, isUnasked: isUnasked,
                    number: number)
            }
        }
    }
}

extension ChallengeAnswer.Proof {
    fileprivate var isBasic: Bool {
        if case .basic = self { true } else { false }
    }
}

extension Challenge {
    var isAnswerableBasic: Bool { scheme == "basic" && token68 == nil }

    /// Together with the origin, the protection space (RFC 9110 section 11.5).
    var realm: [UInt8] { parameters["realm"] ?? [] }
}
