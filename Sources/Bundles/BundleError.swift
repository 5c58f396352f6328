internal import PinproxySerialization

/// The parts of a bundle, by the keys that sign them.
package enum BundleRole: String, Sendable, Hashable, CaseIterable {
    /// The keys of each role.
    case root
    /// The policy.
    case bundle
    /// The current bundle, valid for a short time.
    case timestamp
}

/// Why a bundle is refused, in one sentence.
package enum BundleError: Error, Equatable, CustomStringConvertible {
    case tooLarge(limit: Int)
    /// A part doesn't have the expected format.
    case malformed(part: String, String)
    /// A complete file has it.
    case missing(BundleRole)
    /// The payload has another role than its place requires.
    case payloadType(BundleRole, found: String)
    /// Too few valid signatures; `by` names who has to sign.
    case signatures(BundleRole, version: Int, by: String, valid: Int, threshold: Int)
    /// A version is missing in the chain of roots.
    case gap(known: Int, next: Int)
    /// A rollback.
    case older(BundleRole, version: Int, known: Int)
    /// Two contents have the same version.
    case changed(BundleRole, version: Int)
    /// At an instant of Unix time.
    case expired(BundleRole, version: Int, Int64)
    /// The timestamp names another bundle.
    case otherBundle(version: Int, named: Int)
    /// The stored state of the last verification can't be used.
    case state(String)
    /// The keys that a verifier begins with can't be used.
    case keys(String)

    package var description: String {
        switch self {
        case .tooLarge(let limit): "the file is larger than \(limit >> 20) MiB"
        case .malformed(let part, let reason): "\(part): \(reason)"
        case .missing(let role): "the file has no \(role.rawValue)"
        case .payloadType(let role, let found):
            "\(role.rawValue): the payload is of type \"\(Self.shown(found))\", not \(Envelope.type(of: role))"
        case .signatures(let role, let version, let by, let valid, let threshold):
            "\(role.rawValue) version \(version) has \(valid) of the \(threshold) signatures needed by \(by)"
        case .gap(let known, let next):
            "the roots continue with version \(next), but version \(known) is known: version \(known + 1) is missing"
        case .older(let role, let version, let known):
            "\(role.rawValue) version \(version) is older than version \(known), which was verified before"
        case .changed(let role, let version):
            "\(role.rawValue) version \(version) differs from the \(role.rawValue) of the same version verified before"
        case .expired(let role, let version, let time):
            "\(role.rawValue) version \(version) expired at \(BundleTime.text(time))"
        case .otherBundle(let version, let named):
            version == named
                ? "the timestamp names another bundle of version \(version)"
                : "the timestamp names bundle version \(named), not version \(version)"
        case .state(let reason): "what is kept of the last bundle can't be used: \(reason)"
        case .keys(let reason): "the keys to begin with can't be used: \(reason)"
        }
    }

    /// On one line, of bounded length, with control characters escaped.
    static func shown(_ text: String) -> String { ShownBytes.text(Array(text.utf8).span) }
}
