package import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity

/// A ``TaskRecord`` for `pinproxy tasks` and the control socket. Times are seconds from the task's start.
package struct TaskSummary: Codable, Sendable, Equatable {
    /// As URLSessionTask.State has it.
    package enum State: String, Codable, Sendable { case running, suspended, canceling, completed }

    /// The request over one upstream connection, as in URLSessionTaskTransactionMetrics.
    package struct Transaction: Codable, Sendable, Equatable {
        /// The origin's, or the parent proxy's: `192.0.2.1:443`.
        package var remoteAddress: String
        package var localAddress: String?
        /// ALPN name: `h2` or `http/1.1`. Nil for a tunnel.
        package var networkProtocol: String?
        /// The HTTP/2 stream, once the request is sent.
        package var stream: Int32?
        package var reused: Bool
        /// Durations of the connection's steps; nil where it was reused.
        package var nameLookup: Double?
        package var connect: Double?
        package var tls: Double?
        /// When the request was handed to the connection.
        package var began: Double
        package var requestSent: Double?
        package var firstByte: Double?
        /// When the response's last byte was passed on, or the try was abandoned.
        package var lastByte: Double?
    }

    package struct Hop: Codable, Sendable, Equatable {
        package var status: Int
        /// The target, without the query.
        package var to: String
    }

    package var id: UInt64
    package var kind: String
    package var state: State
    package var phase: String
    package var client: String
    /// The client's protocol: `h2`, `http/1.1` or `http/1.0`; nil: its request couldn't be read.
    package var `protocol`: String?
    /// The HTTP/2 stream.
    package var stream: Int32?
    /// A local client's user by number and name, process, and systemd unit.
    package var clientUser: UInt32?
    package var clientUserName: String?
    package var clientProcess: Int32?
    package var clientExecutable: String?
    package var clientUnit: String?
    package var method: String
    package var host: String
    package var port: UInt16
    /// Without the query; empty for CONNECT.
    package var path: String
    /// The pattern of the matched entry.
    package var entry: String?
    /// 0 before there is a response.
    package var status: Int
    /// Passed on so far, heads included.
    package var bytesUp: UInt64
    package var bytesDown: UInt64
    /// Bytes of the request's body, if declared.
    package var totalUp: UInt64?
    /// Bytes of the response's body, if declared.
    package var totalDown: UInt64?
    package var age: Double
    /// Where the matched pin is written.
    package var pin: String?
    /// Why it ended without a response.
    package var cause: String?
    package var transactions: [Transaction]
    package var hops: [Hop]?

    package init(
        _ record: borrowing TaskRecord, state: State, phase: String, up: UInt64, down: UInt64, now: MonotonicTime
    ) {
        id = record.number
        kind = record.kind.rawValue
        self.state = state
        self.phase = phase
        client = record.client?.description ?? ""
        `protocol` = record.clientProtocol
        stream = record.stream
        clientUser = record.traits?.user
        clientUserName = record.traits?.userName
        clientProcess = record.traits?.process
        clientExecutable = record.traits?.executable
        clientUnit = record.traits?.unit
        method = record.methodName
        host = record.authority?.host ?? ""
        port = record.authority?.port ?? 0
        path = String(decoding: record.path, as: UTF8.self)
        entry = record.entry
        status = record.status
        bytesUp = up
        bytesDown = down
        totalUp = record.bodyUp
        totalDown = record.bodyDown
        age = Self.seconds((record.ended ?? now) - record.began)
        pin = record.matchedPin
        cause = record.failure
        if !record.hops.isEmpty { hops = record.hops.map { Hop(status: $0.status, to: $0.url.description) } }
        let (began, isExchange) = (record.began, record.kind == .exchange || record.kind == .upgrade)
        transactions = record.transactions.map { Transaction($0, since: began, isExchange: isExchange) }
    }

    fileprivate static func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds / 1000) / 1_000_000 }
}

extension TaskSummary.Transaction {
    fileprivate init(_ transaction: TaskRecord.Transaction, since start: MonotonicTime, isExchange: Bool) {
        let connection = transaction.upstream
        remoteAddress = connection.address.description
        localAddress = connection.localAddress?.description
        networkProtocol = isExchange ? connection.applicationProtocol : nil
        stream = transaction.stream
        reused = transaction.isReused
        if !reused {
            nameLookup = TaskSummary.seconds(connection.metrics.nameLookup)
            connect = TaskSummary.seconds(connection.metrics.connect)
            tls = TaskSummary.seconds(connection.metrics.tls)
        }
        began = TaskSummary.seconds(transaction.began - start)
        requestSent = transaction.requestSent.map { TaskSummary.seconds($0 - start) }
        firstByte = transaction.firstByte.map { TaskSummary.seconds($0 - start) }
        lastByte = transaction.ended.map { TaskSummary.seconds($0 - start) }
    }
}
