import CPinproxyOpenSSL

enum OpenSSLErrorQueue {
    /// Empties the queue. Checking first costs a sixth of clearing.
    static func clear() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    /// Takes the oldest error, which caused the others, and empties the queue. 0: none.
    static func take() -> UInt {
        let code = ERR_get_error()
        ERR_clear_error()
        return code
    }

    /// OpenSSL's own words for an error, e.g. "wrong version number".
    static func reason(of code: UInt) -> String {
        if let text = ERR_reason_error_string(code) { return String(cString: text) }
        return code == 0 ? "no reason given by OpenSSL" : "OpenSSL error \(code)"
    }

    /// The reason of the oldest error; empties the queue.
    static func takeReason() -> String { reason(of: take()) }
}
