import PinproxyEventLoop
import PinproxySession
import PinproxyTransport

/// Another protocol that a client of HTTP/2 speaks on a stream, such as WebSocket.
struct ClientUpgrade {
    let relay: Relay
    let relayed: Relayed
}

extension ClientRequest {
    /// - Parameters:
    ///   - socket: carries the stream's bytes.
    ///   - ended: called once, after the task's record is complete.
    func carry(_ upstream: HTTP1Upstream, to socket: ByteStream, ended: @escaping () -> Void) {
        guard let route else {
            upstream.close()
            socket.stop()
            return ended()
        }
        record.kind = .upgrade
        let relayed = Relayed(route: route, address: upstream.address, verdict: upstream.verdict, timeout: timeout)
        let relay = Relay(
            loop: worker.loop, downstream: socket, upstream: upstream.stream,
            received: ByteBuffer(slabs: worker.session.slabs), answered: upstream.responses.takeBuffer(),
            idleNanoseconds: relayed.timeout?.nanoseconds ?? worker.serverSettings.idleNanoseconds
        ) { [weak self] ending in
            guard let self, let relay = upgrade.take()?.relay else { return }
            record.relayEnded(ending, up: relay.bytesUp, down: relay.bytesDown)
            worker.session.complete(&record)
            ended()
        }
        relay.limitSilence(by: relayed.timeout)
        upgrade = ClientUpgrade(relay: relay, relayed: relayed)
        connection.reviewRelay()
        guard upgrade != nil else { return }
        relay.start()
        if worker.isDraining { connection.drain(relay) }
    }

    func endRelay(_ cause: String) { upgrade?.relay.cancel(because: cause) }
}

extension Relay {
    /// - Parameter timeout: of the rules; nil: none.
    func limitSilence(by timeout: Duration?) {
        guard let timeout else { return }
        endWhenSilent(forNanoseconds: timeout.nanoseconds, because: "nothing moved for \(timeout) (session.timeout)")
    }
}
