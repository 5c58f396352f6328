package import EventLoop

/// An origin within this process: nothing is looked up and dialled for its hosts, and no parent proxy is asked. TLS
/// with it is spoken and judged as with any other.
package protocol OwnOrigin: AnyObject {
    /// The near end of a new connection, for a target of TLS. On the loop.
    /// - Parameter host: canonical.
    /// - Returns: nil if the host is not its own.
    func connection(to host: String) throws(OwnOriginError) -> Descriptor?
}

/// Why there is no connection to it.
package struct OwnOriginError: Error {
    let cause: String

    package init(_ cause: String) { self.cause = cause }
}
