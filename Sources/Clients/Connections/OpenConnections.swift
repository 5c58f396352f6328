package import PinproxyRecords
import PinproxySession

/// What the clients of a worker have open, and what their tasks hold open to origins.
package struct OpenConnections: Sendable {
    package private(set) var tasks = 0
    /// Connections of clients by what is spoken, inside CONNECT once that has begun. Those that a stream of HTTP/2 on
    /// the proxy's own port carries count from then on.
    package private(set) var clients: [WorkerCounters.Kind: Int] = [:]
    package private(set) var clientStreams = 0
    private var alone: [WorkerCounters.Kind: Int] = [:]
    private var shared: Set<ObjectIdentifier> = []
    package private(set) var upstreamStreams = 0

    package init() {}

    /// Connections to origins by what is spoken.
    package var upstreams: [WorkerCounters.Kind: Int] { alone.merging([.http2: shared.count], uniquingKeysWith: +) }

    package mutating func add(_ client: ClientConnection) {
        if let http2 = client.http2 {
            clients[.http2, default: 0] += 1
            clientStreams += http2.connection.streamCount
            for request in http2.requests where request.hasTask { add(request.record) }
            return
        }
        if client.server.streamNumber == nil { clients[client.kind, default: 0] += 1 }
        if client.hasTask { add(client.record) }
    }

    /// A client of the proxy's own port that speaks HTTP/2 there.
    package mutating func addFront(streams: Int) {
        clients[.http2, default: 0] += 1
        clientStreams += streams
    }

    private mutating func add(_ task: borrowing TaskRecord) {
        tasks += 1
        guard let upstream = task.upstream else { return }
        if upstream.hasStreams {
            shared.insert(ObjectIdentifier(upstream))
            upstreamStreams += 1
        } else {
            alone[WorkerCounters.Kind(task), default: 0] += 1
        }
    }
}

extension ClientConnection {
    /// Without HTTP/2.
    fileprivate var kind: WorkerCounters.Kind {
        guard case .none = carrier else { return record.kind == .upgrade ? .upgrade : .tunnel }
        return .http1
    }
}
