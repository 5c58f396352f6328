import PinproxyEventLoop
import PinproxySession

/// The metrics of a task: NSURLSessionTaskMetrics. Instants are durations since ``SessionTask/resume()`` began the
/// task.
public struct TaskMetrics: Sendable, Hashable {
    /// One request over one connection: NSURLSessionTaskTransactionMetrics. Redirects, challenges, retries add others.
    public struct Transaction: Sendable, Hashable {
        /// The address of the server, or of the parent proxy: `192.0.2.1:443`.
        public var remoteAddress: String { remote.description }
        /// The local address: `192.0.2.7:51234`; nil once the connection is closed.
        public var localAddress: String? { local?.description }
        /// The protocol's ALPN name: `http/1.1`.
        public let networkProtocol: String
        /// Whether the connection had been used before.
        public let isReused: Bool
        /// The duration of name resolution; nil for a reused connection, as the next two.
        public let nameLookup: Duration?
        /// The duration of the TCP connection attempt.
        public let connect: Duration?
        /// The duration of the TLS handshake; nil without TLS.
        public let tls: Duration?
        /// When the connection was ready.
        public let began: Duration
        /// When the last byte was sent.
        public let requestSent: Duration?
        /// When the first byte arrived.
        public let firstByte: Duration?
        /// When the last byte was delivered, or the try ended.
        public let ended: Duration?
        private let remote: SocketAddress
        private let local: SocketAddress?
    }

    /// The requests sent, in order; at most the first 32, and the last.
    public internal(set) var transactions: [Transaction] = []
    /// The last response's status, if one began.
    public internal(set) var status: Int?
    /// The number of followed redirects.
    public internal(set) var redirects = 0
    /// Bytes of the last request, with its head.
    public internal(set) var sent: UInt64 = 0
    /// Bytes of the last response, with its head if it was delivered.
    public internal(set) var received: UInt64 = 0
    /// The duration from the beginning to the end.
    public internal(set) var duration: Duration = .zero

    init() {}
}

extension TaskMetrics {
    mutating func add(_ record: borrowing TaskRecord) {
        let start = duration
        let began = record.began
        for transaction in record.transactions { transactions.append(Transaction(transaction, began, start)) }
        redirects += record.hops.count
        status = record.status == 0 ? nil : record.status
        sent = record.bytesUp
        received = record.bytesDown
        if let ended = record.ended { duration = start + .nanoseconds(Int64(clamping: ended - began)) }
    }
}

extension TaskMetrics.Transaction {
    fileprivate init(_ transaction: TaskRecord.Transaction, _ zero: MonotonicTime, _ start: Duration) {
        func since(_ instant: MonotonicTime) -> Duration { start + .nanoseconds(Int64(clamping: instant - zero)) }
        let connection = transaction.upstream
        let isReused = transaction.isReused
        func taken(_ nanoseconds: UInt64) -> Duration? { isReused ? nil : .nanoseconds(Int64(clamping: nanoseconds)) }
        remote = connection.address
        local = connection.localAddress
        networkProtocol = connection.applicationProtocol
        self.isReused = isReused
        nameLookup = taken(connection.metrics.nameLookup)
        connect = taken(connection.metrics.connect)
        tls = connection.verdict == nil ? nil : taken(connection.metrics.tls)
        began = since(transaction.began)
        requestSent = transaction.requestSent.map(since)
        firstByte = transaction.firstByte.map(since)
        ended = transaction.ended.map(since)
    }
}
