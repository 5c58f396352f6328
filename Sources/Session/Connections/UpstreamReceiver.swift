/// Who is told what happens on an upstream connection while it serves an exchange.
package protocol UpstreamReceiver: AnyObject {
    /// Bytes of a response, or the end, can be read.
    func upstreamIsReadable()
    /// A write that was blocked may go on.
    func upstreamIsWritable()
    /// Bytes of a response have arrived.
    func responseBegan()
    /// What time it is, for a certificate's dates.
    var unixTime: Int64 { get }
}
