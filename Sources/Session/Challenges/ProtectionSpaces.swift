import PinproxyHTTPWire
import PinproxyTLS

/// One origin for one user: nonces of Digest, folders that accepted Basic, realms that refused the password.
struct Space {
    static let mostNonces = 8
    static let mostFolders = 16
    static let mostRefusals = 16

    struct Nonce {
        let challenge: DigestChallenge
        var count: UInt32 = 0
        var isAccepted = false
        let session: DigestChallenge.Session

        /// Fresh for each use, except within a session.
        var clientNonce: [UInt8]

        /// - Parameter session: the session to continue; nil: a new one.
        init(_ challenge: DigestChallenge, continuing session: DigestChallenge.Session? = nil) {
            self.challenge = challenge
            self.session = session ?? DigestChallenge.Session(nonce: challenge.nonce, clientNonce: Self.random())
            clientNonce = self.session.clientNonce
        }

        mutating func use() -> Nonce? {
            guard count < .max else { return nil }
            count += 1
            clientNonce = challenge.isSession ? session.clientNonce : Self.random()
            return self
        }

        private static func random() -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            return (0..<2).flatMap { _ in
                let digits = String(generator.next() as UInt64, radix: 16)
                return Array((String(repeating: "0", count: 16 - digits.count) + digits).utf8)
            }
        }
    }

    enum Use {
        case basic([UInt8])
        case digest(Nonce)
    }

    var lastUse: UInt64 = 0
    /// Most recently used last.
    private var nonces: [Nonce] = []
    /// Paths up to their last slash, with their realms.
    private var folders: [(path: [UInt8], realm: [UInt8])] = []
    private var refusals: [Refusal] = []

    struct Refusal: Hashable {
        private let isDigest: Bool
        /// Cut to the length compared.
        private let realm: ArraySlice<UInt8>

        init(asDigest isDigest: Bool, in realm: [UInt8]) {
            self.isDigest = isDigest
            self.realm = realm.prefix(256)
        }
    }

    private func holds(_ refusal: Refusal) -> Bool { refusals.contains(refusal) }

    /// Challenges that the password may still answer. A refused digest isn't followed by the password itself.
    func open(_ challenges: [Challenge]) -> [Challenge] {
        let refusedDigests = challenges.filter { $0.scheme == "digest" && holds(Refusal(asDigest: true, in: $0.realm)) }
            .map(\.realm)
        return challenges.filter {
            !refusedDigests.contains($0.realm) && !holds(Refusal(asDigest: $0.scheme == "digest", in: $0.realm))
        }
    }

    /// The proof that a request may carry unasked.
    mutating func unasked(for target: [UInt8], at origin: RequestURL.Origin) -> Use? {
        if let index = nonces.lastIndex(where: { $0.isAccepted && $0.challenge.covers(target, at: origin) }) {
            return use(index)
        }
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        return folders.first { path.starts(with: $0.path) }.map { .basic($0.realm) }
    }

    /// The next use of the nonce that a server has sent, perhaps again.
    mutating func asked(by challenge: DigestChallenge) -> Use? {
        let index = nonces.firstIndex { $0.challenge.isSameTry(as: challenge) }
        if let index, let use = use(index) { return use }
        return use(insert(Nonce(challenge)))
    }

    mutating func accepted(_ challenge: DigestChallenge, next: DigestChallenge?) {
        // Another exchange may have found the password wrong meanwhile.
        guard !holds(Refusal(asDigest: true, in: challenge.realm)) else { return }
        let index = nonces.firstIndex { $0.challenge.isSameTry(as: challenge) }
        if let index { nonces[index].isAccepted = true }
        // An unknown session can't be continued.
        guard let next, let session = index.map({ nonces[$0].session }) else { return }
        if let known = nonces.firstIndex(where: { $0.challenge.isSameTry(as: next) }) {
            nonces[known].isAccepted = true
            nonces.append(nonces.remove(at: known))
        } else {
            nonces[insert(Nonce(next, continuing: session))].isAccepted = true
        }
    }

    /// The password isn't sent to that realm again. True if that is new.
    mutating func refused(asDigest isDigest: Bool, in realm: [UInt8]) -> Bool {
        if isDigest {
            nonces.removeAll { $0.challenge.realm == realm }
        } else {
            folders.removeAll { $0.realm == realm }
        }
        let refusal = Refusal(asDigest: isDigest, in: realm)
        guard !holds(refusal) else { return false }
        if refusals.count == Self.mostRefusals { refusals.removeFirst() }
        refusals.append(refusal)
        return true
    }

    /// Keeps the count, since the server may send the nonce again.
    mutating func refused(_ challenge: DigestChallenge) {
        let index = nonces.firstIndex { $0.challenge.isSameTry(as: challenge) }
        if let index { nonces[index].isAccepted = false }
    }

    /// The protection space of Basic: at and below the last slash of the path (RFC 7617 section 2.2).
    mutating func accepted(folderOf target: [UInt8], in realm: [UInt8]) {
        guard !holds(Refusal(asDigest: false, in: realm)) else { return }
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        guard let slash = path.lastIndex(of: UInt8(ascii: "/")), slash < DigestChallenge.longest else { return }
        let folder = Array(path[...slash])
        if folders.contains(where: { folder.starts(with: $0.path) }) { return }
        folders.removeAll { $0.path.starts(with: folder) }
        folders.append((folder, realm))
        if folders.count > Self.mostFolders { folders.removeFirst() }
    }

    mutating func refused(at target: [UInt8]) {
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        folders.removeAll { path.starts(with: $0.path) }
    }

    private mutating func use(_ index: Int) -> Use? {
        guard let nonce = nonces[index].use() else {
            nonces.remove(at: index)
            return nil
        }
        nonces.append(nonces.remove(at: index))
        return .digest(nonce)
    }

    private mutating func insert(_ nonce: Nonce) -> Int {
        if nonces.count == Self.mostNonces { nonces.removeFirst() }
        nonces.append(nonce)
        return nonces.count - 1
    }
}

extension DigestChallenge {
    /// Whether the target is in its protection space (RFC 7616 section 3.3, `domain`).
    fileprivate func covers(_ target: [UInt8], at origin: RequestURL.Origin) -> Bool {
        guard let domain else { return true }
        let base = RequestURL(isSecure: origin.isSecure, authority: origin.authority, target: [UInt8(ascii: "/")])
        return domain.split(separator: .init(ascii: " ")).contains { text in
            let written = Array(text)
            guard let url = try? base.resolving(written.span), url.origin == origin else { return false }
            return target.starts(with: url.target)
        }
    }
}

extension MessageDigest {
    var strength: Int {
        switch self {
        case .md5: 0
        case .sha256: 1
        case .sha512Half: 2
        }
    }
}
