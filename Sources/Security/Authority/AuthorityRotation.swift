package import PinproxyTLS

/// Replaces the local authority. During the overlap clients trust both the old one and the new one:
/// ``beginRotation(at:)`` makes the next authority, ``activateNext(at:)`` has it sign, and ``finishRotation(at:)``
/// removes the previous one.
///
/// Repeating an interrupted step completes it: files are replaced whole, and ``load(at:)`` uses the certificate that
/// matches the key.
extension AuthorityFiles {
    package enum RotationPhase: Sendable, Equatable {
        /// One authority, which signs.
        case none
        /// The next one is trusted, and doesn't sign yet.
        case begun
        /// The next one signs, and the previous one is trusted.
        case activated
    }

    package func rotationPhase(at unixTime: UnixTime) throws(AuthorityError) -> RotationPhase {
        if try nextCertificates() != nil { return .begun }
        return try previousCertificate(at: unixTime) == nil ? .none : .activated
    }

    /// Makes the next authority, or returns an existing one; says whether it is new.
    package func beginRotation(at unixTime: UnixTime) throws(AuthorityError) -> (certificate: Certificate, isNew: Bool)
    {
        try requireRotatable()
        return try whileLocked { () throws(AuthorityError) in
            if let present = try nextCertificates()?.first { return (present, false) }
            if try previousCertificate(at: unixTime) != nil {
                throw .rotation("the authority before this one is still trusted: pinproxy ca rotate --finish first")
            }
            // A key left by an interrupted activation is already in use.
            if try next.exists(next.key), let current = try loadCertificates().first,
                try next.loadKey().matches(current)
            {
                try remove(next.key)
            }
            return (try next.make(at: unixTime, machine: Self.machineName()).0.certificate, true)
        }
    }

    /// Has the next authority sign. Returns its certificate, and whether that is new.
    package func activateNext(at unixTime: UnixTime) throws(AuthorityError) -> (certificate: Certificate, isNew: Bool) {
        try requireRotatable()
        return try whileLocked { () throws(AuthorityError) in
            guard try nextCertificates() != nil else {
                // Remains of an interrupted activation.
                try removeNext()
                guard let current = try loadCertificates().first, try previousCertificate(at: unixTime) != nil else {
                    throw .rotation("there is no next authority to activate: pinproxy ca rotate makes one")
                }
                return (current, false)
            }
            let current = try loadCertificates()
            let nextKey = try next.exists(next.key) ? try next.loadKey() : nil
            // If the next key is missing, it must be the present key already.
            let signing = nextKey == nil ? try load(at: unixTime) : try next.load(at: unixTime)
            guard signing.certificate != current.first else {
                throw .keyMissing(certificate: next.certificate, key: next.key)
            }
            if let previous = current.first { try write(previous.pem, to: self.previous, mode: 0o644) }
            if let nextKey { try write(nextKey.pem, to: key, mode: 0o600) }
            try write(signing.certificate.pem, to: certificate, mode: 0o644)
            try removeNext()
            return (signing.certificate, true)
        }
    }

    package func finishRotation(at unixTime: UnixTime) throws(AuthorityError) {
        try requireRotatable()
        try whileLocked { () throws(AuthorityError) in
            guard try nextCertificates() == nil else {
                throw .rotation("the next authority doesn't sign yet: pinproxy ca rotate --activate first")
            }
            try removeNext()
            try remove(previous)
        }
    }

    package func withRotation(_ current: LocalAuthority, at unixTime: UnixTime) -> AuthoritySet {
        var problems: [AuthorityError] = []
        func attempt<Value>(_ work: () throws(AuthorityError) -> Value?) -> Value? {
            do {
                return try work()
            } catch {
                problems.append(error)
                return nil
            }
        }
        let next = attempt { () throws(AuthorityError) -> LocalAuthority? in
            guard let present = try nextCertificates()?.first, present != current.certificate else { return nil }
            return try self.next.load(at: unixTime)
        }
        var previous =
            attempt { () throws(AuthorityError) -> Certificate? in try previousCertificate(at: unixTime) }.map { [$0] }
            ?? []
        // An interrupted activation: its key has replaced that of the file's certificate.
        if let replaced = try? loadCertificates().first, replaced != current.certificate { previous.append(replaced) }
        previous.removeAll { $0 == current.certificate }
        return AuthoritySet(current, next: next, previous: previous, problems: problems)
    }

    /// All certificates that clients should trust: current, next and previous. Reads no key.
    package func trustedCertificates(at unixTime: UnixTime) throws(AuthorityError) -> [Certificate] {
        var found = try loadCertificates()
        for case let certificate? in try [nextCertificates()?.first, previousCertificate(at: unixTime)]
        where !found.contains(certificate) { found.append(certificate) }
        return found
    }

    /// Whether no other authority lies beside it, next or previous: clients trust the certificates in its file, and no
    /// more.
    package var isAlone: Bool { (try? !next.exists(next.certificate) && !exists(previous)) ?? false }

    /// The certificates of the authority and of a rotation that can be read, expired ones too.
    package var ownCertificates: [Certificate] {
        [certificate, next.certificate, previous].compactMap { path in
            (try? AuthorityFiles(certificate: path, key: key, state: state).loadCertificates())?.first
        }
    }

    package var paths: [String] { [certificate, key, next.certificate, next.key, previous] }

    // MARK: Files

    /// Nil if no next authority exists, or if it is already in force.
    private func nextCertificates() throws(AuthorityError) -> [Certificate]? {
        guard try next.exists(next.certificate) else { return nil }
        let chain = try next.loadCertificates()
        return try chain.first == loadCertificates().first ? nil : chain
    }

    /// Nil if there is no previous authority, or if it has expired (unless `unixTime` is `.min`) or still signs.
    package func previousCertificate(at unixTime: UnixTime) throws(AuthorityError) -> Certificate? {
        let files = AuthorityFiles(certificate: previous, key: key, state: state)
        guard try files.exists(previous), let found = try files.loadCertificates().first, unixTime <= found.notAfter
        else {
            return nil
        }
        return try found == loadCertificates().first ? nil : found
    }

    private func removeNext() throws(AuthorityError) {
        // The certificate first: a key alone is no authority yet.
        try remove(next.certificate)
        try remove(next.key)
    }

    private func requireRotatable() throws(AuthorityError) {
        if ServiceCredential.name(at: key) != nil || ServiceCredential.name(at: certificate) != nil {
            throw .rotation("\(key) is handed over by systemd: make the next authority where that comes from")
        }
        guard let own = try loadCertificates().first else { return }
        guard own.isSelfIssued else {
            throw .rotation(
                "\(certificate) was issued by \(own.issuer): have the next one issued there, and replace the files")
        }
    }
}
