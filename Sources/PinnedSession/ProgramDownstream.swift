import PinproxyEventLoop
import Glibc
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession
import PinproxyTransport

/// The near door of a Swift program's exchange: one task, on the session's loop.
final class ProgramDownstream {
    // unowned: the thread keeps the core until its loop has ended, and only that loop calls the downstream.
    unowned let core: SessionCore
    let task: SessionTask
    private let exchange: Exchange
    private(set) var request = RequestTraits()
    private var message: OwnedRequest?
    /// After followed redirects.
    private var url: RequestURL?

    private var source: UploadBody?

    // The response's way down.
    private var response: HTTPResponse?
    private var receiver: any BodyReceiver = DroppedBody(mostBytes: 0)
    private var progress = TransferProgress()

    // The end.
    /// Sent after the current exchange, instead of it.
    private var replacement: HTTPRequest?
    private var replacements = 0
    private var metrics = TaskMetrics()
    /// A failure on this side, which overrides the exchange's.
    private var failure: SessionError?
    private var cause = ""
    private var isOver = false
    private var isSuspended = false
    private var postponed: (() -> Void)?

    init(_ task: SessionTask, of core: SessionCore) {
        self.core = core
        self.task = task
        exchange = Exchange(session: core.session)
        exchange.downstream = self
    }

    // MARK: Control

    func begin(_ wanted: HTTPRequest) {
        do throws(SessionError) {
            let url = try core.routing.url(of: wanted)
            // Before any file is opened.
            _ = try core.destination(of: url)
            self.url = url
            makeSource(of: wanted.body, on: core.loop) { [weak self] made in self?.bodyIsReady(made, for: wanted) }
        } catch {
            end(.failure(error))
        }
    }

    private func bodyIsReady(_ made: Result<any UploadSource, SessionError>, for wanted: HTTPRequest) {
        guard !isOver, let url else { return }
        guard !isSuspended else {
            postponed = { [weak self] in self?.bodyIsReady(made, for: wanted) }
            return
        }
        do throws(SessionError) {
            let upload = try made.get()
            let source = UploadBody(upload) { [weak self] in self?.bodyMoved() }
            source.progressed = { [weak self] count in
                guard let self else { return }
                progress.sent = count
                report()
            }
            self.source = source
            let message = try core.routing.head(of: wanted, to: url, bodyLength: upload.bodyLength(for: wanted.method))
            let (destination, rules) = try core.destination(of: url)
            self.message = message
            request = RequestTraits(madeHere: message.head)
            progress = TransferProgress()
            progress.sentTotal = source.length.flatMap { $0 > 0 ? UInt64($0) : nil }
            exchange.record.began(message.view, number: task.id, at: core.loop.now)
            exchange.record.authority = destination.authority
            exchange.begin(request, to: destination, by: rules, over: nil)
        } catch {
            end(.failure(error))
        }
    }

    private func bodyMoved() {
        if exchange.isUnderWay { _ = exchange.downstreamIsReadable() }
    }

    func suspend() {
        isSuspended = true
        if exchange.isUnderWay { exchange.suspend("the program") }
    }

    func resume() {
        isSuspended = false
        if let postponed {
            self.postponed = nil
            postponed()
        } else if exchange.isUnderWay {
            exchange.resume("the program")
        }
    }

    /// Not to be called from the exchange's callbacks.
    func fail(_ error: SessionError) {
        guard !isOver else { return }
        if failure == nil { failure = error }
        if exchange.isUnderWay { return exchange.cancel("the program") }
        end(.failure(failure ?? error))
    }

    private func end(_ outcome: SessionTask.Outcome) {
        guard !isOver else { return }
        isOver = true
        if case .failure = outcome { receiver.abandon() }
        source?.close()
        source = nil
        core.ended(task, metrics: metrics, outcome)
    }

    func collect(_ record: borrowing TaskRecord) {
        metrics.add(record)
        cause = record.failure ?? ""
    }

    private func report() { task.report(progress) }
}

// MARK: - The request's way up

extension ProgramDownstream: Downstream, ExchangeGuide {
    func withRequest(_ body: (borrowing RequestView) -> Void) {
        // The view borrows from a local copy.
        guard let message else { return }
        body(message.view)
    }

    var requestBody: any BodySource { source ?? HeldBody() }
    func wantsRead(_ wanted: Bool) {}

    // MARK: The response's way down

    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        if replacement != nil {
            receiver = DroppedBody(mostBytes: 64 << 10)
            return self
        }
        var fields: [HTTPResponse.Field] = []
        for field in response.head.fields {
            let (name, value) = (field.name.text(in: response.bytes), field.value.text(in: response.bytes))
            fields.append(HTTPResponse.Field(name: name, value: value))
        }
        let arrived = HTTPResponse(
            status: response.head.status, url: url.map { "\($0)" } ?? "", fields: fields,
            pinning: PinningResult(exchange.record.upstream?.verdict, at: destination.authority.host))
        self.response = arrived
        let length = response.head.bodyLength.bytes
        progress.received = 0
        progress.receivedTotal = length
        receiver = receiver(of: arrived, length: length)
        receiver.isReady = { [weak self] in
            guard let self else { return }
            if let error = receiver.failure { return fail(error) }
            if exchange.isUnderWay { exchange.downstreamIsWritable() }
        }
        report()
        return self
    }

    /// As the task and the hook want it.
    private func receiver(of arrived: HTTPResponse, length: UInt64?) -> any BodyReceiver {
        var purpose = task.purpose
        switch core.hooks.response?(arrived, task) ?? .allow {
        case .allow: break
        case .cancel: return refuse(.cancelled)
        case .becomeDownload(let path): purpose = .download(to: path)
        }
        switch purpose {
        case .data:
            let limit = core.routing.longestBody
            let isTooLong = request.method != .head && length.map { $0 > UInt64(limit) } == true
            if isTooLong { return refuse(.bodyTooLong(limit: limit)) }
            return CollectedBody(limit: limit, from: core.session.slabs.budget)
        case .download(let path):
            guard (200..<300).contains(arrived.status) else { return refuse(.unacceptableStatus(arrived)) }
            return DownloadedFile(path, on: core.loop)
        }
    }

    private func refuse(_ error: SessionError) -> any BodyReceiver {
        if failure == nil { failure = error }
        return DroppedBody(mostBytes: 0)
    }

    // MARK: News

    var guide: any ExchangeGuide { self }

    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        if let hook = core.hooks.redirect {
            let method = request.head.methodRange.text(in: request.bytes)
            let redirect = Redirect(task: task, from: self.url.map { "\($0)" } ?? "", method: method, to: "\(url)")
            switch hook(redirect) {
            case .follow: break
            case .pass: return .pass
            case .refuse(let why): return .refuse(why)
            case .replace(let other):
                let limit = core.routing.redirectLimit
                guard replacements < limit else {
                    return .refuse("more than \(limit) redirects, one after another (maximumRedirects)")
                }
                replacement = other
                return .pass
            }
        }
        do {
            let (destination, rules) = try core.destination(of: url)
            self.url = url
            return .follow(destination, rules)
        } catch {
            return .refuse(error.description)
        }
    }

    func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials? {
        guard let hook = core.hooks.challenge else { return nil }
        let offers = challenges.map { challenge in
            AuthenticationChallenge.Offer(
                scheme: challenge.scheme,
                realm: challenge.parameters["realm"].map { String(decoding: $0, as: UTF8.self) })
        }
        return hook(AuthenticationChallenge(url: "\(url)", offers: offers))
    }

    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        TaskRecord.Refusal(status: 0, cause: failure.cause, errorType: "")
    }

    func exchangeEnded(_ ending: ExchangeEnding) {
        if failure == nil { failure = receiver.failure }
        switch ending {
        case .finished(let kept):
            kept?.close()
            if let failure { end(.failure(failure)) } else { finish() }
        case .refused(let failure, let destination):
            end(.failure(self.failure ?? SessionError(failure, at: destination)))
        case .cut:
            if failure == nil, replacement != nil { return finish() }
            let host = url?.authority.description ?? ""
            end(.failure(failure ?? .connectionLost("\(host): \(cause)")))
        case .switched(let upstream):
            _ = upstream.end(.abandoned)
            end(.failure(.badResponse("unrequested 101 Switching Protocols")))
        }
    }

    private func finish() {
        if let replacement {
            self.replacement = nil
            replacements += 1
            metrics.redirects += 1
            source?.close()
            source = nil
            return core.loop.afterThisTurn { [weak self] in
                guard let self, !isOver else { return }
                begin(replacement)
            }
        }
        guard var response else { return end(.failure(.badResponse("no response"))) }
        response.metrics = metrics
        receiver.finish { [weak self] result in
            guard let self else { return }
            end(
                result.map { stored in
                    SessionTask.Result(response: response, body: stored.bytes, file: stored.path)
                })
        }
    }
}

// MARK: - The response's body

extension ProgramDownstream: BodySink {
    var carried: UInt64 { receiver.carried }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        let count = try receiver.write(piece)
        if replacement == nil, count > 0 {
            progress.received += UInt64(count)
            report()
        }
        return count
    }
}
