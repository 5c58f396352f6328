import CPinproxyCrypt
import Glibc
import Logging
import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTLS
import Synchronization

/// Verifies user names and passwords by an htpasswd file.
///
/// bcrypt is slow on purpose: comparisons run one by one on a queue and take turns (``FairQueue``), so that a client
/// that tries many passwords delays itself. Right credentials are remembered by a keyed digest, until a reload.
package final class UserVerifier: Sendable {
    package enum Ruling: Equatable {
        case right
        case wrong
        /// Too many wait.
        case notCompared(String)
    }

    /// Queued comparisons, in all and of one claimant. Beyond that the client must retry.
    static let longestQueue = 64
    static let longestOfOne = 16
    private static let mostRemembered = 1024

    private typealias Answer = @Sendable (Bool) -> Void

    private struct Comparison {
        let credentials: Credentials
        let digest: SHA256Digest
    }

    private struct State {
        var queue = FairQueue<Claimant, Comparison>(places: longestQueue, share: longestOfOne)
        /// Several connections may wait for one comparison.
        var waiting: [SHA256Digest: [Answer]] = [:]
        /// Since the queue was full.
        var notCompared = 0
        var remembered: Set<SHA256Digest> = []
    }

    private let users: [[UInt8]: BcryptHash]
    /// Compared with the password of an unknown user, so that the time doesn't reveal names.
    private let decoy: BcryptHash?
    private let digests = KeyedDigest()
    private let state = Mutex(State())
    private let run: Background
    private let logger: Logger

    /// - Parameter run: runs work later on a queue.
    init(file: UserFile, logger: Logger, run: @escaping Background) throws(UserFileError) {
        self.logger = logger
        self.run = run
        var users: [[UInt8]: BcryptHash] = [:]
        for line in file.lines {
            guard let colon = line.firstIndex(of: ":"), let hash = BcryptHash(line[line.index(after: colon)...]) else {
                throw UserFileError(path: file.path, user: String(line.prefix { $0 != ":" }))
            }
            users[Array(line[..<colon].utf8)] = hash
        }
        self.users = users
        decoy = users.values.max { $0.cost < $1.cost }
    }

    convenience init(file: UserFile, logger: Logger) throws {
        let queue = try WorkQueue("users")
        try self.init(file: file, logger: logger) { queue.async($0) }
    }

    typealias Background = @Sendable (@escaping @Sendable () -> Void) -> Void

    /// For a client that has proved to be this user.
    package func user(named name: [UInt8]) -> KnownUser? {
        users[name].map { KnownUser(name: name, hash: $0) }
    }

    /// Whether the file has this user with this password.
    func knows(_ user: KnownUser?) -> Bool {
        user.map { users[$0.name] == $0.hash } ?? false
    }

    /// Calls `answer` once, on the loop's thread: at once if the credentials are remembered or too many wait, else
    /// later; never if the loop ends before. It should hold its objects weakly, since it may be released on another
    /// thread.
    package func verify(
        _ credentials: Credentials, for claimant: Claimant, on loop: EventLoop, _ answer: @escaping (Ruling) -> Void
    ) {
        let digest = digest(of: credentials)
        let bound = LoopBound(answer, on: loop)
        let later: Answer = { isGood in bound.post { $0(isGood ? .right : .wrong) } }
        enum Step {
            case answer(Ruling)
            case compare, join
            case turnAway(String, isFirst: Bool)
        }
        let step: Step = state.withLock { state in
            if state.remembered.contains(digest) { return .answer(.right) }
            if state.waiting[digest] != nil {
                state.waiting[digest]?.append(later)
                return .join
            }
            if let lack = state.queue.add(Comparison(credentials: credentials, digest: digest), of: claimant) {
                state.notCompared += 1
                return .turnAway(lack.text("passwords", of: claimant), isFirst: state.notCompared == 1)
            }
            state.waiting[digest] = [later]
            return .compare
        }
        switch step {
        case .answer(let ruling): answer(ruling)
        case .join: break
        case .compare: run { [self] in compareNext() }
        case .turnAway(let what, let isFirst):
            if isFirst {
                logger.warning(
                    "users.limit",
                    metadata: [
                        "cause": "\(what) are waiting to be checked",
                        "effect": "requests with further passwords get 503",
                    ])
            }
            answer(.notCompared(what))
        }
    }

    private func compareNext() {
        guard let (claimant, comparison) = state.withLock({ $0.queue.next() }) else { return }
        let isGood = isRight(comparison.credentials)
        let (answers, turnedAway): ([Answer], Int) = state.withLock { state in
            state.queue.served(claimant)
            if isGood {
                if state.remembered.count >= Self.mostRemembered { state.remembered.removeAll() }
                state.remembered.insert(comparison.digest)
            }
            let answers = state.waiting.removeValue(forKey: comparison.digest) ?? []
            // Not at the first free place: the line would recur.
            guard state.queue.count <= Self.longestOfOne / 2 else { return (answers, 0) }
            defer { state.notCompared = 0 }
            return (answers, state.notCompared)
        }
        if turnedAway > 0 {
            logger.notice(
                "users.limit",
                metadata: ["effect": "passwords are checked again", "not_compared": .stringConvertible(turnedAway)])
        }
        for answer in answers { answer(isGood) }
    }

    private func isRight(_ credentials: Credentials) -> Bool {
        if let hash = users[credentials.user] { return hash.isOf(credentials.password) }
        _ = decoy?.isOf(credentials.password)
        return false
    }

    private func digest(of credentials: Credentials) -> SHA256Digest {
        digests.of(credentials.user + [UInt8(ascii: ":")] + credentials.password)
    }
}

/// A user with the hash that a client has matched. Tells whether a later file has the same password.
package struct KnownUser: Sendable {
    let name: [UInt8]
    fileprivate let hash: BcryptHash
}

/// A line of a user file without a bcrypt hash.
struct UserFileError: Error, CustomStringConvertible {
    let path: String
    let user: String

    var description: String { "\(path): the password of \"\(user)\" is not a bcrypt hash" }
}

/// A password's bcrypt hash as `htpasswd -nB` writes it: `$2y$10$` and 53 characters.
struct BcryptHash: Sendable, Equatable {
    private let text: String
    /// The logarithm of a comparison's work.
    let cost: Int

    /// Nil: not bcrypt, or its unsound (`$2x$`) or unsupported (`$2$`) variants.
    init?(_ text: Substring) {
        guard let match = text.wholeMatch(of: /\$2[aby]\$(?<cost>[0-9]{2})\$[.\/A-Za-z0-9]{53}/),
            let cost = Int(match.output.cost), (4...31).contains(cost)
        else { return nil }
        self.text = String(text)
        self.cost = cost
    }

    /// Takes milliseconds to seconds, by cost.
    func isOf(_ password: [UInt8]) -> Bool {
        // C strings end at a NUL: bytes after it would not be compared.
        guard !password.contains(0) else { return false }
        // Unsafe since it must be erased in place, uncopied: traces of the password are in it.
        let state = UnsafeMutablePointer<crypt_data>.allocate(capacity: 1)
        state.initialize(to: crypt_data())
        defer {
            explicit_bzero(state, MemoryLayout<crypt_data>.size)
            state.deallocate()
        }
        guard let result = crypt_r((password + [0]).map { CChar(bitPattern: $0) }, text, state) else { return false }
        return Self.areEqual(Array(String(cString: result).utf8), Array(text.utf8))
    }

    /// Takes the same time wherever they differ.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}

/// Digests of secrets under a random key of this process, nested like HMAC, so that look-up times reveal nothing.
struct KeyedDigest: Sendable {
    private let key: [UInt8]

    init() {
        var random = SystemRandomNumberGenerator()
        key = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    func of(_ secret: [UInt8]) -> SHA256Digest {
        SHA256Digest.of(key + SHA256Digest.of(key + secret).bytes)
    }
}
