import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// Every cell of AFNetworking's table (with the safe last row): mode × allows invalid × validates name ×
/// pins or none, each against the same eight servers.
@Suite struct TruthTableTests {
    /// What may be wrong with a server.
    enum Server: String, CaseIterable {
        /// Valid, right name, pinned.
        case good
        /// The same, with another name in its certificate.
        case otherName
        case expired
        /// Issued by an untrusted authority, but pinned.
        case untrusted
        case untrustedOtherName
        case untrustedExpired
        /// Valid, and not pinned.
        case unpinned
        /// Wrong in every respect.
        case stranger
    }

    struct Cell: CustomTestStringConvertible, Sendable {
        let mode: PinningMode
        let allowsInvalid: Bool
        let validatesName: Bool
        let hasPins: Bool
        /// The servers accepted; all others must be refused.
        let accepted: Set<Server>

        var testDescription: String {
            """
            \(mode), \(allowsInvalid ? "" : "no ")invalid, \(validatesName ? "" : "no ")name, \
            \(hasPins ? "" : "no ")pins
            """
        }
    }

    static let everyone = Set(Server.allCases)
    static let valid: Set<Server> = [.good, .unpinned]

    static let cells: [Cell] = {
        func cell(
            _ mode: PinningMode, invalid: Bool, name: Bool, pins: Bool = true, _ accepted: Set<Server>
        ) -> Cell {
            Cell(mode: mode, allowsInvalid: invalid, validatesName: name, hasPins: pins, accepted: accepted)
        }
        var cells: [Cell] = []
        for pins in [true, false] {
            cells += [
                cell(.none, invalid: false, name: true, pins: pins, valid),
                cell(.none, invalid: false, name: false, pins: pins, valid.union([.otherName])),
                cell(.none, invalid: true, name: true, pins: pins, []),
                cell(.none, invalid: true, name: false, pins: pins, everyone),
            ]
        }
        cells += [
            cell(.certificate, invalid: false, name: true, [.good]),
            cell(.certificate, invalid: false, name: false, [.good, .otherName]),
            // Dates are enforced for pinned certificates anyway.
            cell(.certificate, invalid: true, name: true, [.good, .untrusted]),
            cell(.certificate, invalid: true, name: false, [.good, .untrusted, .otherName, .untrustedOtherName]),
            cell(.publicKey, invalid: false, name: true, [.good]),
            cell(.publicKey, invalid: false, name: false, [.good, .otherName]),
            cell(.publicKey, invalid: true, name: true, [.good, .expired, .untrusted, .untrustedExpired]),
            cell(.publicKey, invalid: true, name: false, everyone.subtracting([.unpinned, .stranger])),
        ]
        for mode in [PinningMode.certificate, .publicKey] {
            for invalid in [true, false] {
                for name in [true, false] { cells.append(cell(mode, invalid: invalid, name: name, pins: false, [])) }
            }
        }
        return cells
    }()

    /// The servers, and the trusted authority.
    static func servers() throws -> (trusted: HeldCertificate, [Server: HeldCertificate]) {
        let trusted = try HeldCertificate.root("Trusted")
        let untrusted = try HeldCertificate.root("Untrusted")
        let expired = CertificateTemplate.leaf("api.test").with {
            $0.notAfter = CertificateTemplate.now - CertificateTemplate.day
        }
        return (
            trusted,
            [
                .good: try trusted.issue(.leaf("api.test")),
                .otherName: try trusted.issue(.leaf("other.test")),
                .expired: try trusted.issue(expired),
                .untrusted: try untrusted.issue(.leaf("api.test")),
                .untrustedOtherName: try untrusted.issue(.leaf("other.test")),
                .untrustedExpired: try untrusted.issue(expired),
                .unpinned: try trusted.issue(.leaf("api.test")),
                .stranger: try HeldCertificate.root("Stranger").issue(.leaf("other.test")),
            ]
        )
    }

    /// A pin for every server but the unpinned one and the stranger.
    static func pins(of servers: [Server: HeldCertificate], for mode: PinningMode) throws -> [Pin] {
        try servers.filter { $0.key != .unpinned && $0.key != .stranger }.values.map {
            mode == .certificate ? try $0.certificatePin() : try $0.keyPin()
        }
    }

    @Test func theTableIsWhole() {
        #expect(Self.cells.count == 3 * 2 * 2 * 2)
    }

    @Test(arguments: cells)
    func cell(_ cell: Cell) throws {
        let (trusted, servers) = try Self.servers()
        let pins = try cell.hasPins ? Self.pins(of: servers, for: cell.mode) : []
        let policy = SecurityPolicy(
            mode: cell.mode, pins: PinSet(pins), allowsInvalidCertificates: cell.allowsInvalid,
            validatesDomainName: cell.validatesName)
        let anchors = TrustAnchors([try trusted.parsed])
        for (server, held) in servers {
            let verdict = policy.evaluate(
                try held.presented(), host: Chains.host, anchors: anchors, at: Chains.now)
            #expect(
                verdict.isAccepted == cell.accepted.contains(server),
                "\(server): \(verdict.refusal?.kind ?? "accepted")")
            #expect((verdict.matchedPin != nil) == (verdict.isAccepted && cell.mode != .none), "\(server)")
            if let refusal = verdict.refusal {
                #expect(refusal.title.contains("api.test"))
                #expect(refusal.details.hasPrefix(refusal.title))
                #expect(!refusal.title.contains("\n"))
            }
        }
    }

    /// The table's footnote: without a domain, the first rule doesn't refuse.
    @Test func withoutADomainThereIsNoNameToCheck() throws {
        let chains = try Chains()
        let policy = SecurityPolicy(allowsInvalidCertificates: true)
        let stranger = try chains.stranger.presented()
        #expect(policy.evaluate(stranger, host: nil, anchors: try chains.anchors, at: Chains.now).isAccepted)
        let strict = SecurityPolicy()
        #expect(!strict.evaluate(stranger, host: nil, anchors: try chains.anchors, at: Chains.now).isAccepted)
        #expect(
            strict.evaluate(try chains.presented, host: nil, anchors: try chains.anchors, at: Chains.now).isAccepted)
    }
}
