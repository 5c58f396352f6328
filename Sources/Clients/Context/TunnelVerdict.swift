import Security

/// What let a verified tunnel's bytes flow.
struct TunnelVerdict {
    /// How the verdict was come by; as the log has it.
    enum Check: String {
        /// The certificates that passed by in this very handshake (TLS 1.2 and older).
        case inBand = "in-band"
        /// Those that a probe of the same address was shown. Weaker: what this client's peer shows can't be
        /// seen in TLS 1.3, nor where a session is resumed.
        case probe = "probe (weaker)"
    }

    let verdict: Verdict
    let check: Check
}
