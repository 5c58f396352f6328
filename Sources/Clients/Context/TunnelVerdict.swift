import PinproxySecurity

struct TunnelVerdict {
    /// The evidence, in the log's words.
    enum Check: String {
        /// Certificates of this handshake (TLS 1.2 and older).
        case inBand = "in-band"
        /// A probe of the same address. Weaker: TLS 1.3 and resumed sessions hide this client's certificates.
        case probe = "probe (weaker)"
    }

    let verdict: Verdict
    let check: Check
}
