import EventLoop
import Session

/// What a task took: NSURLSessionTaskMetrics. All instants are durations since ``SessionTask/resume()`` began it.
public struct TaskMetrics: Sendable, Hashable {
    /// The way of one request over one connection: NSURLSessionTaskTransactionMetrics. A redirect, a challenge, a
    /// connection that had gone and a download that broke off each begin another.
    public struct Transaction: Sendable, Hashable {
        /// Of the server, or of the parent proxy: `192.0.2.1:443`.
        public let remoteAddress: String
        /// This end: `192.0.2.7:51234`; nil once the connection is closed.
        public let localAddress: String?
        /// As ALPN names it: `http/1.1`.
        public let networkProtocol: String
        /// The connection had served before.
        public let isReused: Bool
        /// How long the look-up of the name took; nil for a connection that was reused, as for the next two.
        public let nameLookup: Duration?
        /// How long the connection to the address took.
        public let connect: Duration?
        /// How long the TLS handshake took; nil without TLS.
        public let tls: Duration?
        /// When the connection was there.
        public let began: Duration
        /// When the request's last byte had been sent.
        public let requestSent: Duration?
        /// When the response's first byte came.
        public let firstByte: Duration?
        /// When the response's last byte was passed on, or the try was given up.
        public let ended: Duration?
    }

    /// The first one first; at most the first 32, and the last.
    public internal(set) var transactions: [Transaction] = []
    /// Redirects that were followed.
    public internal(set) var redirects = 0
    /// Bytes sent of the last request, its head included.
    public internal(set) var sent: UInt64 = 0
    /// Bytes received of the last response, its head not counted where it was not passed on.
    public internal(set) var received: UInt64 = 0
    /// From the beginning to the end.
    public internal(set) var duration: Duration = .zero

    init() {}
}

extension TaskMetrics {
    mutating func add(_ record: borrowing TaskRecord) {
        let start = duration
        let began = record.began
        for transaction in record.transactions { transactions.append(Transaction(transaction, began, start)) }
        redirects += record.hops.count
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
        remoteAddress = connection.address.description
        localAddress = connection.localAddress?.description
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
