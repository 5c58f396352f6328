package import PinproxyRecords
import PinproxySession

/// Open connections of a worker's clients, and of their tasks to origins.
package struct OpenConnections: Sendable {
    package private(set) var tasks = 0
    /// Client connections by protocol: that inside CONNECT, once it has begun. A connection that is an HTTP/2 stream on
    /// the proxy's own port isn't counted before that.
    package private(set) var clients: [WorkerCounters.Kind: Int] = [:]
    package private(set) var clientStreams = 0
    private var alone: [WorkerCounters.Kind: Int] = [:]
    private var shared: Set<ObjectIdentifier> = []
    package private(set) var upstreamStreams = 0

    package init() {}

    /// Connections to origins by protocol.
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
    /// The kind of a connection without HTTP/2.
    fileprivate var kind: WorkerCounters.Kind {
        guard case .none = carrier else { return record.kind == .upgrade ? .upgrade : .tunnel }
        return .http1
    }
}
