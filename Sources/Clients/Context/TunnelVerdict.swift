import Security

/// What let a verified tunnel's bytes flow.
struct TunnelVerdict {
    /// How the verdict was come by; as the log has it.
    enum Check: String {
        /// The certificates that passed by in this very handshake (TLS 1.2 and older).
        case inBand = "in-band"
        /// A probe's of the same address. Weaker: TLS 1.3 and resumed sessions hide what this client is shown.
        case probe = "probe (weaker)"
    }

    let verdict: Verdict
    let check: Check
}
