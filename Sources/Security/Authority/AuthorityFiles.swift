import Glibc
package import PinproxyTLS

/// The local authority's certificate and key, both PEM.
package struct AuthorityFiles: Sendable, Hashable {
    package let certificate: String
    package let key: String
    let state: String?
    /// The names that an authority made here may sign for; nil: every host.
    let permitted: PermittedNames?
    /// Whether the key is a signer's, and isn't read here.
    let isSignedElsewhere: Bool

    /// - Parameter state: the state directory, unless an administrator chose other places.
    package init(
        certificate: String, key: String, state: String? = nil, permitting permitted: PermittedNames? = nil,
        isSignedElsewhere: Bool = false
    ) {
        self.certificate = certificate
        self.key = key
        self.state = state
        self.permitted = permitted
        self.isSignedElsewhere = isSignedElsewhere
    }

    var next: AuthorityFiles {
        AuthorityFiles(
            certificate: Self.path(certificate, "next"), key: Self.path(key, "next"), state: state,
            permitting: permitted,
            isSignedElsewhere: isSignedElsewhere)
    }

    /// The previous authority's certificate, during a rotation.
    var previous: String { Self.path(certificate, "previous") }

    /// `authority.pem` to `authority.next.pem`.
    private static func path(_ path: String, _ role: String) -> String {
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        let name = path.dropFirst(folder.count)
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return "\(path).\(role)" }
        return "\(folder)\(name[..<dot]).\(role)\(name[dot...])"
    }

    /// Whether an authority is new: users must then be asked to trust it.
    package enum Provenance: Sendable {
        case found
        case created
        case completed
    }

    /// Loads the authority, or makes its missing parts, at the daemon's start.
    package func loadOrCreate(
        at unixTime: UnixTime
    ) throws(AuthorityError) -> (authority: LocalAuthority, provenance: Provenance) {
        if isSignedElsewhere {
            guard try exists(certificate) else { throw .notMade(path: certificate) }
            return (try load(at: unixTime), .found)
        }
        // The certificate is written last, so both are complete.
        if try exists(certificate), try exists(key) { return (try load(at: unixTime), .found) }
        try requireCredentials()
        return try whileLocked { () throws(AuthorityError) in
            if try exists(certificate) { return (try load(at: unixTime), .found) }
            return try make(at: unixTime, machine: Self.machineName())
        }
    }

    /// Makes an authority and writes it, never over another one. A key without a certificate is completed. A lock on
    /// the key's directory keeps two processes from creating at once.
    /// - Parameter machine: the host's name for the subject; this machine's if nil.
    package func create(
        at unixTime: UnixTime, machine: String? = nil
    ) throws(AuthorityError) -> (authority: LocalAuthority, provenance: Provenance) {
        try requireCredentials()
        return try whileLocked { () throws(AuthorityError) in
            if try exists(certificate) { throw .exists(path: certificate) }
            return try make(at: unixTime, machine: machine ?? Self.machineName())
        }
    }

    /// Excludes others that create an authority in the same directory.
    func whileLocked<Result>(_ work: () throws(AuthorityError) -> Result) throws(AuthorityError) -> Result {
        let own = [key, certificate].filter { ServiceCredential.name(at: $0) == nil }
        guard let first = own.first else { return try work() }
        let lock: FileLock
        do {
            for path in own { try place(of: path).createFolder() }
            lock = try place(of: first).lock()
        } catch {
            throw .unwritable(path: first, error)
        }
        defer { withExtendedLifetime(lock) {} }
        return try work()
    }

    /// Credentials of systemd are never made here.
    private func requireCredentials() throws(AuthorityError) {
        for path in [key, certificate] {
            guard let absence = ServiceCredential.absence(path, ENOENT), try !exists(path) else { continue }
            throw .unreadable(path: path, .noCredential(absence))
        }
    }

    /// Writes the key first: after a crash the key alone is kept, which no client trusts yet.
    func make(
        at unixTime: UnixTime, machine: String
    ) throws(AuthorityError) -> (LocalAuthority, Provenance) {
        let isCompletion = try exists(key)
        let privateKey = isCompletion ? try loadKey() : try LocalAuthority.generateKey()
        let authority = try LocalAuthority.issue(for: privateKey, machine: machine, at: unixTime, permitting: permitted)
        if isCompletion {
            try prove(authority, at: unixTime)
        } else {
            try write(privateKey.pem, to: key, mode: 0o600)
        }
        try write(authority.certificate.pem, to: certificate, mode: 0o644)
        return (authority, isCompletion ? .completed : .created)
    }

    /// Loads the authority and checks what would make clients refuse its leaves. Authorities above it may follow in the
    /// file, and are sent with each leaf. An expired one is loaded too: tunnels and plain HTTP don't need it.
    package func load(at unixTime: UnixTime) throws(AuthorityError) -> LocalAuthority {
        if isSignedElsewhere { return try authority(loadCertificates(), key: nil, at: unixTime) }
        if try exists(certificate), try !exists(key) { throw .keyMissing(certificate: certificate, key: key) }
        var chain = try loadCertificates()
        let privateKey = try loadKey()
        if let own = chain.first, !privateKey.matches(own), let next = try? next.loadCertificates(),
            let other = next.first,
            privateKey.matches(other)
        {
            // An activation of the next authority was interrupted after its key.
            chain = next
        }
        guard let own = chain.first, privateKey.matches(own) else {
            throw .mismatch(certificate: certificate, key: key)
        }
        let authority = try authority(chain, key: privateKey, at: unixTime)
        try prove(authority, at: min(unixTime, own.notAfter))
        return authority
    }

    private func authority(
        _ chain: [Certificate], key: PrivateKey?, at unixTime: UnixTime
    ) throws(AuthorityError) -> LocalAuthority {
        guard let own = chain.first else { throw unfit("it is empty") }
        guard own.isAuthority else { throw unfit("it is not a CA certificate (CA:TRUE is missing)") }
        guard unixTime >= own.notBefore else { throw .premature(path: certificate, own.notBefore) }
        guard let identifier = own.subjectKeyIdentifier else {
            throw unfit("it has no subjectKeyIdentifier, so strict clients would refuse its leaves")
        }
        return try LocalAuthority(
            certificate: own, keyIdentifier: identifier, issuers: chain.filter { !$0.isSelfIssued }, key: key)
    }

    /// Issues a leaf and verifies it as a strict client would.
    private func prove(_ authority: LocalAuthority, at unixTime: UnixTime) throws(AuthorityError) {
        let name = ServerName.dns("pinproxy.invalid")
        let leaf = try authority.mint(for: name, at: unixTime, lifetime: 3600).leaf
        if case .failure(let failure) = authority.verify(leaf, for: name, at: unixTime),
            // Name constraints can't be judged by an invented name.
            failure.reason != .nameConstraint
        {
            throw unfit("clients would refuse its leaves: \(failure.message)")
        }
    }

    private func unfit(_ reason: String) -> AuthorityError { .unfit(path: certificate, reason: reason) }

    /// The certificates of the authority and those above it; at least one.
    package func loadCertificates() throws(AuthorityError) -> [Certificate] {
        let file: SmallFile
        do { file = try place(of: certificate).read() } catch { throw .unreadable(path: certificate, error) }
        do {
            return try Certificate.all(inPEM: file.bytes)
        } catch {
            throw .brokenCertificate(path: certificate, error)
        }
    }

    func loadKey() throws(AuthorityError) -> PrivateKey {
        let bytes: [UInt8]
        do {
            bytes = try PrivateFile.read(place(of: key))
        } catch {
            switch error {
            case .unreadable(let problem): throw .unreadable(path: key, problem)
            case .foreign(let owner): throw .foreignKey(path: key, owner: owner)
            case .exposed(let mode): throw .exposedKey(path: key, mode: mode)
            }
        }
        do { return try PrivateKey(pem: bytes) } catch { throw .brokenKey(path: key, error) }
    }

    private func place(of path: String) -> FilePlace { FilePlace(path, own: state.map { TrustedDirectory($0) }) }

    func exists(_ path: String) throws(AuthorityError) -> Bool {
        do { return try place(of: path).isThere() } catch { throw .unreadable(path: path, error) }
    }

    func remove(_ path: String) throws(AuthorityError) {
        do { try place(of: path).remove() } catch { throw .unwritable(path: path, error) }
    }

    func write(_ text: String, to path: String, mode: UInt32) throws(AuthorityError) {
        do { try place(of: path).write(Array(text.utf8), mode: mode) } catch { throw .unwritable(path: path, error) }
    }

    static func machineName() -> String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
