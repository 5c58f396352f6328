import EventLoop

/// A descriptor that is watched for something to read, and owned.
final class DescriptorWatch: SocketHandler {
    let descriptor: Descriptor
    private let ready: (DescriptorWatch) -> Void
    private var source: SocketSource?

    /// - Parameter ready: called on the loop as long as there is something to read. It is held as long as the watch.
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

    /// Nothing is told after this.
    func stop() { source?.invalidate() }
}
