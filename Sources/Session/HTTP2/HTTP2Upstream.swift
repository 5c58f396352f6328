import Transport

package final class HTTP2Upstream: UpstreamConnection {
    init(_ made: Establishment, slabs: SlabPool, timeouts: Timeouts) { super.init(made) }
    var takesExchanges: Bool { false }
}
