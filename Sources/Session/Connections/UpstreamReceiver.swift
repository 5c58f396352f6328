/// Who is told what happens on an upstream connection while it serves an exchange.
package protocol UpstreamReceiver: AnyObject {
    func upstreamIsReadable()
    func upstreamIsWritable()
    func responseBegan()
    /// What time it is, for a certificate's dates.
    var unixTime: Int64 { get }
}
