import EventLoop
import Glibc
import HTTPWire
import Serialization
import Transport

/// The near door of an exchange that a Swift program asked for: one task, on the session's loop.
final class ProgramDownstream {
    // unowned: the thread keeps the core until its loop has ended, and only that loop calls the downstream.
    unowned let core: SessionCore
    let task: SessionTask
    private let exchange: Exchange
    private(set) var request = RequestTraits()
    private var message: OwnedRequest?
    /// What is asked for now, after the redirects that were followed.
    private var url: RequestURL?

    // The request's way up.
    private var source: (any BodySource)?
    private var outgoing: ByteBuffer
    /// As it was written last.
    private var sentHead: [UInt8] = []
    private var sendsBody = false
    private(set) var requestCarried: UInt64 = 0

    // The response's way down.
    private var response: HTTPResponse?
    private var receiver: any BodyReceiver = DroppedBody(mostBytes: 0)
    private var progress = TransferProgress()

    // The end.
    /// Made in the place of what is under way, when that is over.
    private var replacement: HTTPRequest?
    private var replacements = 0
    private var metrics = TaskMetrics()
    /// What went wrong on this side; it counts before what the exchange says.
    private var failure: SessionError?
    private var cause = ""
    private var isOver = false
    private var isSuspended = false
    /// What begins when it goes on.
    private var postponed: (() -> Void)?

    init(_ task: SessionTask, of core: SessionCore) {
        self.core = core
        self.task = task
        exchange = Exchange(session: core.session)
        outgoing = ByteBuffer(slabs: core.session.slabs)
        exchange.downstream = self
    }

    // MARK: Control

    func begin(_ wanted: HTTPRequest) {
        do throws(SessionError) {
            let url = try core.routing.url(of: wanted)
            // Before a file is opened for it.
            _ = try core.destination(of: url)
            self.url = url
            makeSource(of: wanted.body, on: core.loop) { [weak self] made in self?.bodyIsReady(made, for: wanted) }
        } catch {
            end(.failure(error))
        }
    }

    private func bodyIsReady(_ made: Result<any BodySource, SessionError>, for wanted: HTTPRequest) {
        guard !isOver, let url else { return }
        guard !isSuspended else {
            postponed = { [weak self] in self?.bodyIsReady(made, for: wanted) }
            return
        }
        do throws(SessionError) {
            let source = try made.get()
            source.moved = { [weak self] in self?.bodyMoved() }
            self.source = source
            let message = try core.routing.head(of: wanted, to: url, framing: source.framing(for: wanted.method))
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
        if exchange.isUnderWay { exchange.downstreamIsReadable() }
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

    /// Ends it, wherever it stands. Not to be called by what the exchange calls.
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

    /// What the record of an exchange knows at its end.
    func collect(_ record: borrowing TaskRecord) {
        metrics.add(record)
        cause = record.failure ?? ""
    }

    private func report() { task.report(progress) }
}

// MARK: - The request's way up

extension ProgramDownstream: Downstream {
    func withRequest(_ body: (borrowing RequestView) -> Void) {
        // A copy in hand, since the view borrows from it.
        guard let message else { return }
        body(message.view)
    }

    func beginRequest(head: inout [UInt8], replayLimit: Int) { send(head, withBody: true) }

    func beginAgain(head: inout [UInt8], keepsBody: Bool) {
        if keepsBody { source?.rewind() }
        send(head, withBody: keepsBody)
    }

    func rewindRequest() {
        source?.rewind()
        send(sentHead, withBody: true)
    }

    private func send(_ head: [UInt8], withBody: Bool) {
        sentHead = head
        outgoing.consume(outgoing.count)
        outgoing.releaseIfEmpty()
        outgoing.append(head)
        requestCarried = 0
        progress.sent = 0
        sendsBody = withBody && source?.isEmpty == false
    }

    func withSentHead(_ body: (Span<UInt8>) -> Void) {
        let head = sentHead
        body(head.span)
    }

    func passRequest(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome {
        while true {
            if !outgoing.isEmpty {
                let before = outgoing.count
                let outcome = sink.write(before, from: &outgoing)
                requestCarried += UInt64(before - outgoing.count)
                switch outcome {
                case .blocked: return .blocked
                case .failed(let error): return .sinkFailed(error)
                case .done: outgoing.releaseIfEmpty()
                }
            }
            guard sendsBody, let source else { return .ended }
            switch source.next() {
            case .bytes(let piece): add(piece, isChunked: source.length == nil)
            case .waiting: return .waiting
            case .ended:
                sendsBody = false
                if source.length == nil { outgoing.append(Array("0\r\n\r\n".utf8)) }
            case .failed(let why):
                if failure == nil { failure = .requestBody(why) }
                return .sourceFailed(.socket(ECANCELED))
            }
        }
    }

    private func add(_ piece: [UInt8], isChunked: Bool) {
        if isChunked {
            let size = Array("\(String(piece.count, radix: 16))\r\n".utf8)
            outgoing.append(size)
        }
        outgoing.append(piece)
        if isChunked { outgoing.append(Array("\r\n".utf8)) }
        progress.sent += UInt64(piece.count)
        report()
    }

    var canResendRequest: Bool { source?.canRewind ?? true }
    func forgetReplay() {}
    func wantsRead(_ wanted: Bool) {}
    func receiveAhead() -> StreamError? { nil }

    // MARK: The response's way down

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome { receiver.write(count, from: &buffer) }

    func writeHead(
        of response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, into head: inout [UInt8]
    ) -> ResponseCoding {
        let framing = response.head.framing
        let coding: ResponseCoding = framing == .chunked ? .dechunked : .asReceived
        var length: UInt64?
        if case .length(let known) = framing { length = known }
        if replacement != nil {
            receiver = DroppedBody(mostBytes: 64 << 10)
            return coding
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
        progress.received = 0
        progress.receivedTotal = length
        receiver = receiver(of: arrived, length: length)
        receiver.received = { [weak self] count in
            guard let self else { return }
            progress.received += UInt64(count)
            report()
        }
        receiver.isReady = { [weak self] in
            guard let self else { return }
            if let error = receiver.failure { return fail(error) }
            if exchange.isUnderWay { exchange.downstreamIsWritable() }
        }
        report()
        return coding
    }

    /// Where the body of a response goes, as the task and the program want it.
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

    func attemptReport() -> AttemptReport { { _ in } }
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {}

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
            upstream.abandon()
            end(.failure(.badResponse("101 Switching Protocols that no one asked for")))
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
