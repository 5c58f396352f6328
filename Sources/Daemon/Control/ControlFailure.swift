package import EventLoop

/// Why a running proxy gives no answer of use.
package enum ControlFailure: Error, Sendable, Equatable {
    /// No proxy listens there, or this user may not connect.
    case unreachable(SystemError)
    /// Somebody else could have put it there; in words.
    case untrusted(String)
    /// Another process than the one that was meant listens there; nothing was asked of it.
    case stranger(process: Int32)
    /// It answered with an error.
    case refused(status: Int, cause: String)
    case silent
    /// It has closed the connection before it answered.
    case ended
    /// What it answered makes no sense.
    case broken(String)
}
