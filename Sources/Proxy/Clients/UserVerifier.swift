package import Configuration
import Dispatch
import Synchronization
import TLS

/// Checks credentials against a htpasswd file (`proxy.users`), off the threads that carry traffic:
/// a bcrypt check takes as long as thousands of requests.
///
/// Credentials that passed are remembered, as a salted digest and not as text, so that a client
/// pays once. A name that isn't in the file costs as much as a wrong password.
package final class UserVerifier: Sendable {
    package enum Verdict: Sendable {
        case accepted
        case refused
        /// Too many checks are waiting; the client may try again.
        case overloaded
    }

    /// How many credentials are remembered, and how many checks may wait.
    static let cacheLimit = 1024
    static let waitingLimit = 256

    private struct State {
        var known: Set<SHA256Digest> = []
        /// The same, oldest first, in a ring.
        var order: [SHA256Digest] = []
        var oldest = 0
        var waiting = 0
    }

    private let users: [String: PasswordHash]
    private let stranger: PasswordHash
    /// Makes the digests of one process worthless elsewhere.
    private let salt: [UInt8]
    private let queue = DispatchQueue(label: "pinproxy.users")
    private let state = Mutex(State())

    package init(_ file: UserFile) {
        var users: [String: PasswordHash] = [:]
        for line in file.lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            users[String(line[..<colon])] = PasswordHash(String(line[line.index(after: colon)...]))
        }
        self.users = users
        stranger = .unmatched(cost: users.values.map(\.cost).max() ?? 4)
        salt = (0..<32).map { _ in UInt8.random(in: 0...255) }
    }

    /// Whether these credentials have been accepted before. Quick, for the threads that carry traffic.
    package func remembers(_ credentials: BasicCredentials) -> Bool {
        let digest = digest(of: credentials)
        return state.withLock { $0.known.contains(digest) }
    }

    /// Checks the credentials. `completion` is called exactly once, on another thread; or at once,
    /// on this one, when overloaded. It must not block: the next check waits for it.
    package func verify(_ credentials: BasicCredentials, completion: @escaping @Sendable (Verdict) -> Void) {
        let isQueued = state.withLock { state in
            guard state.waiting < Self.waitingLimit else { return false }
            state.waiting += 1
            return true
        }
        guard isQueued else { return completion(.overloaded) }
        queue.async { [self] in
            let verdict = check(credentials)
            state.withLock { $0.waiting -= 1 }
            completion(verdict)
        }
    }

    private func check(_ credentials: BasicCredentials) -> Verdict {
        // Many connections of one client come at once; the first check answers for all.
        if remembers(credentials) { return .accepted }
        guard let hash = users[credentials.user] else {
            _ = stranger.matches(credentials.password)
            return .refused
        }
        guard hash.matches(credentials.password) else { return .refused }
        remember(digest(of: credentials))
        return .accepted
    }

    private func remember(_ digest: SHA256Digest) {
        state.withLock { state in
            guard state.known.insert(digest).inserted else { return }
            if state.order.count < Self.cacheLimit {
                state.order.append(digest)
            } else {
                state.known.remove(state.order[state.oldest])
                state.order[state.oldest] = digest
                state.oldest = (state.oldest + 1) % Self.cacheLimit
            }
        }
    }

    private func digest(of credentials: BasicCredentials) -> SHA256Digest {
        // A name holds no colon, so that no two pairs are written alike.
        .of(salt + Array(credentials.user.utf8) + [UInt8(ascii: ":")] + credentials.password)
    }
}
