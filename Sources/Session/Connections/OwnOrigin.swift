package import PinproxyEventLoop

/// An origin within this process: no look-up, dialling or parent proxy, but TLS as with any other.
package protocol OwnOrigin: AnyObject {
    /// The near end of a new connection for TLS, on the loop; nil for a foreign host. The host is canonical.
    func connection(to host: String) throws(OwnOriginError) -> Descriptor?
}

package struct OwnOriginError: Error {
    let cause: String

    package init(_ cause: String) { self.cause = cause }
}
