/// The sessions that a ClientHello offers to resume: up to TLS 1.2 by identifier (RFC 5246 section 7.4.1.2) or ticket
/// (RFC 5077), in TLS 1.3 by a pre-shared key (RFC 8446 section 4.2.11).
package struct SessionOffer: Sendable, Equatable {
    /// At most 32 bytes. TLS 1.3 clients mostly send some that mean nothing.
    package var sessionID: [UInt8]
    package var hasTicket: Bool
    package var hasPreSharedKey: Bool

    package init(sessionID: [UInt8] = [], hasTicket: Bool = false, hasPreSharedKey: Bool = false) {
        self.sessionID = sessionID
        self.hasTicket = hasTicket
        self.hasPreSharedKey = hasPreSharedKey
    }

    /// Whether a server of TLS 1.2 or older, with that ServerHello, can have resumed one of these sessions.
    package func allows(sessionID: [UInt8]) -> Bool {
        hasTicket || !sessionID.isEmpty && sessionID == self.sessionID
    }
}
