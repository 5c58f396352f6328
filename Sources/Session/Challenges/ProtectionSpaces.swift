import HTTPWire
import TLS

/// What is known of one origin for one user: the nonces of Digest, and the folders that Basic was accepted for.
struct Space {
    static let mostNonces = 8
    static let mostFolders = 16

    /// A challenge whose nonce is in use.
    struct Nonce {
        let challenge: DigestChallenge
        /// Uses so far.
        var count: UInt32 = 0
        var isAccepted = false
        /// For the length of a session, which is where it goes into the secret.
        let sessionNonce: [UInt8]

        /// What this use sends: another each time, but within a session.
        var clientNonce: [UInt8]

        init(_ challenge: DigestChallenge) {
            self.challenge = challenge
            sessionNonce = Self.random()
            clientNonce = sessionNonce
        }

        mutating func use() -> Nonce? {
            guard count < .max else { return nil }
            count += 1
            clientNonce = challenge.isSession ? sessionNonce : Self.random()
            return self
        }

        /// 128 bits in hexadecimal.
        private static func random() -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            return (0..<2).flatMap { _ in
                let digits = String(generator.next() as UInt64, radix: 16)
                return Array((String(repeating: "0", count: 16 - digits.count) + digits).utf8)
            }
        }
    }

    enum Use {
        case basic
        case digest(Nonce)
    }

    var lastUse: UInt64 = 0
    /// The one used last is the last.
    private var nonces: [Nonce] = []
    /// Paths up to their last slash.
    private var folders: [[UInt8]] = []

    /// What a request may carry without being asked.
    mutating func unasked(for target: [UInt8], at origin: RequestURL.Origin) -> Use? {
        if let index = nonces.lastIndex(where: { $0.isAccepted && $0.challenge.covers(target, at: origin) }) {
            return use(index)
        }
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        return folders.contains { path.starts(with: $0) } ? .basic : nil
    }

    /// The next use of a nonce that a server has sent, perhaps again.
    mutating func asked(by challenge: DigestChallenge) -> Use? {
        let index = nonces.firstIndex { $0.challenge.isSameTry(as: challenge) }
        if let index, let use = use(index) { return use }
        return use(insert(challenge))
    }

    mutating func accepted(_ challenge: DigestChallenge, next: DigestChallenge?) {
        let index = nonces.firstIndex { $0.challenge.isSameTry(as: challenge) }
        if let index { nonces[index].isAccepted = true }
        guard let next else { return }
        if let known = nonces.firstIndex(where: { $0.challenge.isSameTry(as: next) }) {
            nonces[known].isAccepted = true
            nonces.append(nonces.remove(at: known))
        } else {
            nonces[insert(next)].isAccepted = true
        }
    }

    /// Its count is kept, in case that the server sends the nonce again.
    mutating func refused(_ challenge: DigestChallenge) {
        let index = nonces.firstIndex { $0.challenge.isSameTry(as: challenge) }
        if let index { nonces[index].isAccepted = false }
    }

    /// The protection space of Basic: at and below the last slash of the path (RFC 7617 section 2.2).
    mutating func accepted(folderOf target: [UInt8]) {
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        guard let slash = path.lastIndex(of: UInt8(ascii: "/")), slash < DigestChallenge.longest else { return }
        let folder = Array(path[...slash])
        if folders.contains(where: { folder.starts(with: $0) }) { return }
        folders.removeAll { $0.starts(with: folder) }
        folders.append(folder)
        if folders.count > Self.mostFolders { folders.removeFirst() }
    }

    mutating func refused(at target: [UInt8]) {
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        folders.removeAll { path.starts(with: $0) }
    }

    private mutating func use(_ index: Int) -> Use? {
        guard let nonce = nonces[index].use() else {
            nonces.remove(at: index)
            return nil
        }
        nonces.append(nonces.remove(at: index))
        return .digest(nonce)
    }

    private mutating func insert(_ challenge: DigestChallenge) -> Int {
        if nonces.count == Self.mostNonces { nonces.removeFirst() }
        nonces.append(Nonce(challenge))
        return nonces.count - 1
    }
}

extension DigestChallenge {
    /// Whether a target is in its protection space (RFC 7616 section 3.3, `domain`).
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
