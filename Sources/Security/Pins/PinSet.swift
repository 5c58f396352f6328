import TLS

/// The pins of one host: a certificate passes if *one* of them matches.
///
/// That is why a backup pin costs nothing: it stands beside the one in use and begins to match on the
/// day that the server changes to it.
///
/// ```swift
/// let pins = PinSet([
///     try Pin(text: "sha256/afwiKY3RxoMmLkuRW1l7QsPZTJPwDS2pdDROQjXw8ig=", for: .publicKey),  // in use
///     try Pin(file: "certs/backup.pem", for: .publicKey),                                    // backup
/// ])
/// ```
public struct PinSet: Sendable, Hashable {
    /// Each pin once, in the order given.
    public private(set) var pins: [Pin]

    /// - Parameter pins: of which one must match; the same pin again counts once.
    public init(_ pins: [Pin] = []) {
        guard pins.count > 1 else {
            self.pins = pins
            return
        }
        var seen: Set<Pin> = []
        self.pins = pins.filter { seen.insert($0).inserted }
    }

    /// The same pins in memory that is allocated now.
    func copied() -> PinSet {
        var copy = self
        copy.pins = pins.map(\.self)
        return copy
    }

    /// Without any pin, a mode that pins refuses.
    public var isEmpty: Bool { pins.isEmpty }

    /// Equal with the same pins in the same order.
    public static func == (left: PinSet, right: PinSet) -> Bool { left.pins == right.pins }
    /// By its pins.
    public func hash(into hasher: inout Hasher) { hasher.combine(pins) }

    /// The first pin that a certificate of the verified chain, from the leaf on, satisfies at an admitted place.
    func match(in chain: VerifiedChain, position: PinPosition) -> (pin: Pin, depth: Int)? {
        for (depth, certificate) in chain.certificates.enumerated()
        where position.admits(depth: depth, of: chain) {
            if let pin = pin(for: certificate, depth: depth) { return (pin, depth) }
        }
        return nil
    }

    /// The pin that a certificate at a depth (0 is the leaf) satisfies.
    func pin(for certificate: Certificate, depth: Int) -> Pin? {
        let spki = certificate.spkiSHA256
        let whole = certificate.sha256
        return pins.first { pin in
            switch pin.kind {
            case .spki(let digest): digest == spki
            case .certificate(let digest, _): digest == whole
            case .record(let record): record.matches(certificate, depth: depth)
            }
        }
    }

    /// The certificates to anchor a chain at. For a fingerprint, any certificate with that digest will do, the peer's
    /// or the one among the trust anchors.
    func anchors(with presented: PresentedChain, among anchors: TrustAnchors) -> [Certificate] {
        let bare = pins.filter(\.isBareFingerprint)
        let sent = presented.certificates.filter { certificate in bare.contains { $0.isFingerprint(of: certificate) } }
        return pins.compactMap(\.certificate) + sent + bare.compactMap { $0.find(among: anchors) }
    }

    /// True if every pin brings its certificate, so that ``anchors(with:among:)`` doesn't depend on the peer.
    var holdsAllAnchors: Bool { !pins.contains(where: \.isBareFingerprint) }
}

extension Pin {
    /// Names a whole certificate that isn't at hand.
    fileprivate var isBareFingerprint: Bool { pinsWholeCertificate && certificate == nil }

    fileprivate func find(among anchors: TrustAnchors) -> Certificate? {
        switch kind {
        case .certificate(let digest, _): anchors.certificate(withDigest: digest)
        case .record(let record) where record.matching == .sha256:
            SHA256Digest(bytes: record.data).flatMap { anchors.certificate(withDigest: $0) }
        case .record(let record): anchors.certificates.first { record.matches($0) }
        case .spki: nil
        }
    }

    fileprivate func isFingerprint(of certificate: Certificate) -> Bool {
        switch kind {
        case .spki: false
        case .certificate(let digest, _): digest == certificate.sha256
        case .record(let record): record.matches(certificate)
        }
    }
}
