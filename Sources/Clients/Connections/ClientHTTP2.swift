import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// The requests of a client that chose HTTP/2 inside its CONNECT.
extension ClientConnection: HTTP2ServerOwner {
    func serveHTTP2() {
        server.lend()
        do throws(HTTP2Unavailable) {
            let http2 = try HTTP2Server(
                over: server.stream, session: worker.session, settings: worker.serverSettings, owner: self)
            self.http2 = http2
            http2.start()
        } catch {
            fail("there is no memory for HTTP/2")
        }
    }

    func handler(of door: HTTP2ServerStream) -> ClientRequest {
        door.exchange.record.client = source
        door.exchange.record.traits = peer.traits
        door.exchange.record.clientGroup = record.clientGroup
        let request = ClientRequest(door, worker: worker)
        request.connection = self
        request.identity = tunnel?.identity ?? self.request.identity
        return request
    }

    func note(_ record: inout TaskRecord) {
        record.client = source
        record.traits = peer.traits
        record.clientGroup = self.record.clientGroup
        if let route = tunnel?.route {
            record.authority = route.authority
            record.entrySlot = route.slot
        }
    }

    func refusedStream(_ cause: String) {
        showedTrust()
        run?.refused(cause, asking: tunnel?.route.authority)
    }

    func noticed(_ notice: HTTP2Notice, on server: HTTP2Server) {
        worker.report(
            notice, by: source, peer.traits, asking: tunnel?.route.authority, requests: server.connection.streamCount)
    }

    func ended(_ server: HTTP2Server, _ cause: String) {
        // This side may be closing it.
        guard http2 != nil else { return }
        http2 = nil
        hasLeft = true
        // The stream has stopped.
        self.server.leave()
    }

    /// All that may have a task: those of HTTP/2, or the one of HTTP/1.1.
    var requests: [ClientRequest] { http2.map { Array($0.requests) } ?? [request] }
}
