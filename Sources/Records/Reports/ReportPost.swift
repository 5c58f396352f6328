import Configuration
import EventLoop
import HTTPWire
import Security
package import Session
import TLS
import Transport

/// One report in flight: an exchange, judged by the response's status.
final class ReportPost {
    private static let answerLimit = 16 << 10

    private let session: LoopSession
    private let destination: Destination
    let request: OwnedRequest
    let held: HeldBody
    private(set) var carried: UInt64 = 0
    private let exchange: Exchange
    private let limit: Duration
    private let refusal: ReportRefusal
    private var status = 0
    private var completion: ((String?) -> Void)?
    private lazy var deadline = Deadline(loop: session.loop, owner: self) { $0.timedOut() }

    /// - Parameter limit: from the name look-up to the end of the response.
    init(
        _ request: ReportRequest, session: LoopSession, within limit: Duration, refusal: @escaping ReportRefusal
    ) {
        self.session = session
        self.limit = limit
        self.refusal = refusal
        exchange = Exchange(session: session)
        self.request = request.message
        held = HeldBody(request.body)
        var timeouts = Timeouts()
        timeouts.connect = limit
        timeouts.tlsHandshake = limit
        var limits = Limits()
        limits.responseHead = Self.answerLimit
        destination = Destination(
            authority: request.authority, target: request.target, origin: session.pool.origin(for: request.target.key),
            terms: ExchangeTerms(timeouts: timeouts, limits: limits), via: nil)
        exchange.downstream = self
    }

    /// - Parameter completion: called once on the loop with the failure, after this has returned; never after
    ///   ``cancel()``.
    func start(completion: @escaping (String?) -> Void) {
        self.completion = completion
        deadline.set(afterNanoseconds: limit.nanoseconds)
        session.loop.afterThisTurn { [weak self] in
            guard let self, self.completion != nil else { return }
            exchange.begin(RequestTraits(madeHere: request.head), to: destination, over: nil)
        }
    }

    func cancel() {
        completion = nil
        deadline.clear()
        if exchange.isUnderWay { exchange.cancel("the report was given up") }
    }

    private func timedOut() {
        let failure = "no answer within \(limit)"
        finish(failure)
        exchange.cancel(failure)
    }

    private func finish(_ failure: String?) {
        guard let completion else { return }
        self.completion = nil
        deadline.clear()
        completion(failure)
    }
}

extension ReportPost: HoldsRequest, ExchangeGuide {
    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        status = response.head.status
        return self
    }

    var guide: any ExchangeGuide { self }

    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        refusal(failure, destination)
    }

    func exchangeEnded(_ ending: ExchangeEnding) {
        switch ending {
        case .finished(let kept):
            kept?.close()
            finish((200..<300).contains(status) ? nil : "the collector answered \(status)")
        case .refused(let failure, let destination):
            finish(refusal(failure, destination).cause)
        case .cut: finish("the collector's answer broke off")
        case .switched(let upstream): _ = upstream.end(.abandoned)
        }
    }
}

extension ReportPost: BodySink {
    func write(_ piece: RawSpan) -> Int {
        carried += UInt64(piece.byteCount)
        return piece.byteCount
    }
}

/// The POST of a report, and its destination.
struct ReportRequest {
    let authority: Authority
    let target: UpstreamTarget
    let message: OwnedRequest
    let body: [UInt8]

    /// - Throws: for an invalid URL, which the configuration excludes.
    init(_ destination: ReportURI, _ body: [UInt8], upstream: UpstreamSettings) throws {
        let host = destination.host.contains(":") ? "[\(destination.host)]" : destination.host
        let usual: UInt16 = destination.isSecure ? 443 : 80
        authority = try Authority.parse("\(host):\(destination.port)", defaultPort: nil).get()
        target = UpstreamTarget(
            host: destination.host, port: destination.port,
            layer: destination.isSecure
                ? .tls(SecurityPolicy(), upstream.anchors, ServerName(host: destination.host)) : .plain,
            upstream: upstream)
        let written = destination.port == usual ? host : "\(host):\(destination.port)"
        // As a proxy's client sends it; the next hop's form is decided later.
        let lines = [
            "POST \(destination.isSecure ? "https" : "http")://\(written)\(destination.target) HTTP/1.1",
            "Host: \(written)", "User-Agent: pinproxy", "Content-Type: application/json",
            "Content-Length: \(body.count)", "", "",
        ]
        message = try OwnedRequest(Array(lines.joined(separator: "\r\n").utf8))
        self.body = body
    }
}

package typealias ReportRefusal = (ExchangeFailure, Destination) -> TaskRecord.Refusal
