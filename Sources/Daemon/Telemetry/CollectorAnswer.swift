import PinproxyHTTPWire
import PinproxyRecords

/// The meaning of a collector's answer (OTLP/HTTP, "OTLP/HTTP Response").
package enum CollectorAnswer: Equatable {
    /// It took the request, maybe without some of it.
    case taken(Rejection?)
    /// The request may be repeated.
    case later(cause: String, after: Duration?)
    /// The request would be refused again.
    case refused(cause: String)

    package struct Rejection: Equatable {
        /// Data points or log records.
        package let count: UInt64
        /// In the collector's words.
        package let message: String
    }

    /// Most bytes of an answer's body.
    static let bodyLimit = 64 << 10
    private static let messageLimit = 500
    /// The longest Retry-After that is followed, in seconds.
    private static let longestWait: UInt64 = 3600

    /// - Parameter type: the answer's Content-Type.
    package init(status: Int, type: String?, retryAfter: String?, body: [UInt8], at unixTime: Int64) {
        switch status {
        case 200..<300:
            // Some answer all requests with the empty object of JSON.
            if body.isEmpty || type?.hasPrefix("application/json") == true { self = .taken(nil); return }
            guard let rejection = Self.rejection(in: body) else {
                self = .refused(cause: "it answered \(status) with something other than OTLP: is it a collector?")
                return
            }
            self = .taken(rejection.count > 0 || !rejection.message.isEmpty ? rejection : nil)
        case 429, 502, 503, 504:
            let seconds = retryAfter.flatMap { RetryAfter.seconds(Array($0.utf8).span, at: unixTime) }
            self = .later(
                cause: "it answered \(status)", after: seconds.map { .seconds(Int64(min($0, Self.longestWait))) })
        default: self = .refused(cause: "it answered \(status)")
        }
    }

    /// The rejection in an `ExportMetricsServiceResponse` or `ExportLogsServiceResponse`; nil: it is neither.
    private static func rejection(in body: [UInt8]) -> Rejection? {
        var (count, message) = (UInt64(0), "")
        var response = ProtobufReader(body[...])
        while let field = response.next() {
            guard field.number == 1 else { continue }
            guard case .bytes(let bytes) = field.value else { return nil }
            var partial = ProtobufReader(bytes)
            while let field = partial.next() {
                switch field {
                case (1, .varint(let value)): count = value > Int64.max ? 0 : value
                case (2, .bytes(let text)): message = String(decoding: text.prefix(messageLimit), as: UTF8.self)
                default: break
                }
            }
            if partial.isBroken { return nil }
        }
        return response.isBroken ? nil : Rejection(count: count, message: message)
    }
}
