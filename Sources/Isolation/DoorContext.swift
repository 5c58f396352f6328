internal import PinproxyEventLoop
internal import PinproxyTransport

/// Why the proxy can't be reached, in human-readable form.
package struct ProxyUnreachable: Error {
    let cause: String

    package init(_ cause: String) { self.cause = cause }
}

/// State that all connections of a ``Door`` share.
final class DoorContext {
    let loop: EventLoop
    let slabs = SlabPool()
    let network: IsolatedNetwork
    let connect: () throws(ProxyUnreachable) -> Descriptor
    let credentials: String?
    let reports: DoorReports
    let names: Names
    var isDraining = false

    init(
        loop: EventLoop, network: IsolatedNetwork, connect: @escaping () throws(ProxyUnreachable) -> Descriptor,
        credentials: String?,
        reports: DoorReports, names: Names
    ) {
        self.loop = loop
        self.network = network
        self.connect = connect
        self.credentials = credentials
        self.reports = reports
        self.names = names
    }
}
