package import PinproxyConfiguration
import PinproxyEventLoop
package import PinproxyHTTPWire
package import PinproxySecurity
package import PinproxySerialization
package import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// A request that the proxy makes for itself: an exchange that collects its response.
package final class ServiceExchange {
    package struct Response {
        package let head: OwnedResponse
        package let body: [UInt8]

        package var status: Int { head.head.status }

        /// The first value of a field.
        package func value(_ name: FieldName) -> String? {
            let view = head.view
            return view.head.fields.first { $0.id == name }.map { field in
                String(decoding: view.bytes.extracting(field.value.offsets).array, as: UTF8.self)
            }
        }
    }

    private static let headLimit = 16 << 10

    private let session: LoopSession
    private let destination: Destination
    package let request: OwnedRequest
    package let held: HeldBody
    package private(set) var carried: UInt64 = 0
    private let exchange: Exchange
    private let limit: Duration
    private let bodyLimit: Int
    private let refusal: ServiceRefusal
    private var head: OwnedResponse?
    private var body: [UInt8] = []
    private var completion: ((Result<Response, ServiceFailure>) -> Void)?
    private lazy var deadline = Deadline(loop: session.loop, owner: self) { $0.timedOut() }

    /// - Parameters:
    ///   - limit: from the name look-up to the end of the response.
    ///   - bodyLimit: the most bytes of a body. A longer body is a failure, unless this is 0.
    package init(
        _ request: ServiceRequest, session: LoopSession, within limit: Duration, bodyLimit: Int,
        refusal: @escaping ServiceRefusal
    ) {
        self.session = session
        self.limit = limit
        self.bodyLimit = bodyLimit
        self.refusal = refusal
        exchange = Exchange(session: session)
        self.request = request.message
        held = HeldBody(request.body)
        var timeouts = Timeouts()
        timeouts.connect = limit
        timeouts.tlsHandshake = limit
        var limits = Limits()
        limits.responseHead = Self.headLimit
        destination = Destination(
            authority: request.authority, target: request.target, origin: session.pool.origin(for: request.target.key),
            terms: ExchangeTerms(timeouts: timeouts, limits: limits), via: nil)
        exchange.downstream = self
    }

    /// - Parameter completion: called once on the loop, after this has returned; never after ``cancel()``.
    package func start(completion: @escaping (Result<Response, ServiceFailure>) -> Void) {
        self.completion = completion
        deadline.set(afterNanoseconds: limit.nanoseconds)
        session.loop.afterThisTurn { [weak self] in
            guard let self, self.completion != nil else { return }
            exchange.begin(RequestTraits(madeHere: request.head), to: destination, over: nil)
        }
    }

    package func cancel() {
        completion = nil
        deadline.clear()
        if exchange.isInFlight { exchange.cancel("the request was given up") }
    }

    private func timedOut() { fail("no answer within \(limit)") }

    private func fail(_ cause: String) {
        finish(.failure(ServiceFailure(cause: cause)))
        if exchange.isInFlight { exchange.cancel(cause) }
    }

    private func finish(_ result: Result<Response, ServiceFailure>) {
        guard let completion else { return }
        self.completion = nil
        deadline.clear()
        completion(result)
    }
}

extension ServiceExchange: HoldsRequest, ExchangeGuide {
    package func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        head = OwnedResponse(response)
        return self
    }

    package var guide: any ExchangeGuide { self }

    package func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        refusal(failure, destination)
    }

    package func exchangeEnded(_ ending: ExchangeEnding) {
        switch ending {
        case .finished(let kept):
            kept?.close()
            guard let head else { return finish(.failure(ServiceFailure(cause: "it answered without a head"))) }
            finish(.success(Response(head: head, body: body)))
        case .refused(let failure, let destination):
            finish(.failure(ServiceFailure(cause: refusal(failure, destination).cause)))
        case .cut: finish(.failure(ServiceFailure(cause: "its response was interrupted")))
        case .switched(let upstream): _ = upstream.end(.abandoned)
        }
    }
}

extension ServiceExchange: BodySink {
    package func write(_ piece: RawSpan) -> Int {
        carried += UInt64(piece.byteCount)
        guard bodyLimit > 0 else { return piece.byteCount }
        guard body.count + piece.byteCount <= bodyLimit else {
            // Not from within the exchange's own call.
            session.loop.afterThisTurn { [weak self, bodyLimit] in
                self?.fail("its response is longer than \(Quantity.text(bytes: bodyLimit))")
            }
            return 0
        }
        piece.withUnsafeBytes { body.append(contentsOf: $0) }
        return piece.byteCount
    }
}

/// Why a service gave no response.
package struct ServiceFailure: Error {
    package let cause: String
}

package typealias ServiceRefusal = (ExchangeFailure, Destination) -> TaskRecord.Refusal

/// A request to a service, and its destination.
package struct ServiceRequest {
    let authority: Authority
    let target: UpstreamTarget
    let message: OwnedRequest
    let body: [UInt8]

    /// - Parameters:
    ///   - fields: besides Host and User-Agent.
    ///   - body: of a POST; nil: a GET.
    ///   - policy: judges the server, where the URL is `https://`.
    ///   - tls: TLS settings for it; nil: the defaults.
    ///   - authorization: the value of Authorization.
    /// - Throws: for an invalid URL, which the configuration excludes.
    package init(
        _ url: ServiceURL, fields: [(name: String, value: String)], body: [UInt8]? = nil, upstream: UpstreamSettings,
        policy: SecurityPolicy = SecurityPolicy(), tls: ClientTLS? = nil, authorization: Secret? = nil
    ) throws {
        let host = url.host.contains(":") ? "[\(url.host)]" : url.host
        let usual: UInt16 = url.isSecure ? 443 : 80
        authority = try Authority.parse("\(host):\(url.port)", defaultPort: nil).get()
        target = UpstreamTarget(
            host: url.host, port: url.port,
            layer: url.isSecure ? .tls(policy, upstream.anchors, ServerName(host: url.host)) : .plain,
            upstream: upstream, tls: tls)
        let written = url.port == usual ? host : "\(host):\(url.port)"
        // In the form of a proxy's client; the next hop's form is decided later.
        var lines = [
            "\(body == nil ? "GET" : "POST") \(url.isSecure ? "https" : "http")://\(written)\(url.target) HTTP/1.1",
            "Host: \(written)", "User-Agent: pinproxy",
        ]
        lines += fields.map { "\($0.name): \($0.value)" }
        if let authorization { lines.append("Authorization: \(authorization.text)") }
        if let body { lines.append("Content-Length: \(body.count)") }
        message = try OwnedRequest(Array((lines + ["", ""]).joined(separator: "\r\n").utf8))
        self.body = body ?? []
    }
}
