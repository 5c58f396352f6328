import PinproxyTLS

/// The pins of one host: *one* must match.
public struct PinSet: Sendable, Hashable {
    /// The distinct pins, in the order given.
    public private(set) var pins: [Pin]

    /// - Parameter pins: duplicates count once.
    public init(_ pins: [Pin] = []) {
        guard pins.count > 1 else {
            self.pins = pins
            return
        }
        var seen: Set<Pin> = []
        self.pins = pins.filter { seen.insert($0).inserted }
    }

    /// A copy in newly allocated memory.
    func copied() -> PinSet {
        var copy = self
        copy.pins = pins.map(\.self)
        return copy
    }

    /// A mode that pins refuses an empty set.
    public var isEmpty: Bool { pins.isEmpty }

    /// Equal with the same pins in the same order.
    public static func == (left: PinSet, right: PinSet) -> Bool { left.pins == right.pins }
    /// Hashes the pins.
    public func hash(into hasher: inout Hasher) { hasher.combine(pins) }

    /// The first pin that a certificate of the verified chain, leaf first, satisfies at an admitted depth.
    func match(in chain: VerifiedChain, position: PinPosition) -> (pin: Pin, depth: Int)? {
        for (depth, certificate) in chain.certificates.enumerated()
        where position.admits(depth: depth, of: chain) {
            if let pin = pin(for: certificate, depth: depth) { return (pin, depth) }
        }
        return nil
    }

    /// The pin that the certificate at a depth (0 is the leaf) satisfies.
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

    /// The certificates to anchor a chain at. A fingerprint takes the peer's certificate, or one of the trust anchors.
    func anchors(with presented: PresentedChain, among anchors: TrustAnchors) -> [Certificate] {
        let bare = pins.filter(\.isBareFingerprint)
        let sent = presented.certificates.filter { certificate in bare.contains { $0.isFingerprint(of: certificate) } }
        return pins.compactMap(\.certificate) + sent + bare.compactMap { $0.find(among: anchors) }
    }

    /// Whether ``anchors(with:among:)`` doesn't depend on the peer.
    var holdsAllAnchors: Bool { !pins.contains(where: \.isBareFingerprint) }
}

extension Pin {
    /// A fingerprint without the certificate.
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
