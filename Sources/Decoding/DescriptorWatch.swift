import PinproxyEventLoop

final class DescriptorWatch: SocketHandler {
    let descriptor: Descriptor
    private let ready: (DescriptorWatch) -> Void
    private var source: SocketSource?

    /// - Parameter ready: called on the loop while there is something to read. Kept as long as the watch.
    init(_ descriptor: consuming Descriptor, loop: EventLoop, ready: @escaping (DescriptorWatch) -> Void) {
        self.ready = ready
        let raw = descriptor.raw
        self.descriptor = descriptor
        let source = SocketSource(loop: loop, descriptor: raw, handler: self)
        source.wantsRead = true
        self.source = source
    }

    deinit { source?.invalidate() }

    func socketReady(_ readiness: Readiness) { ready(self) }

    /// After this `ready` isn't called again.
    func stop() { source?.invalidate() }
}
