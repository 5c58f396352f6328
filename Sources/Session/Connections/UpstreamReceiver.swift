/// Receives an upstream connection's events while it serves an exchange.
package protocol UpstreamReceiver: AnyObject {
    func upstreamIsReadable()
    func upstreamIsWritable()
    func responseBegan()
    /// Now, for a certificate's dates.
    var unixTime: Int64 { get }
}
