import Glibc
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession
import PinproxyTransport

/// The near door of a Swift program's exchange: one task, on the session's loop.
final class ProgramDownstream {
    // unowned: the thread keeps the core until its loop has ended, and only that loop calls the downstream.
    unowned let core: SessionCore
    let task: SessionTask
    let exchange: Exchange
    private(set) var request = RequestTraits()
    private var message: OwnedRequest?
    /// The current URL, after followed redirects.
    var url: RequestURL?
    /// Of the request; nil: the session's.
    private(set) var timeout: Duration?
    private var source: UploadBody?
    /// The session undoes the codings that it asked for.
    private(set) var offersCodings = false
    /// Nil: none for this request.
    private(set) var cookies: CookieStore?
    /// The program's own Cookie field stays, instead of the store's.
    private(set) var hasOwnCookies = false

    // The response and its body:
    var response: HTTPResponse?
    var receiver: any BodyReceiver = DroppedBody(mostBytes: 0)
    var progress = TransferProgress()

    // Pending decisions of hooks:
    var redirecting: HookDecision<RedirectChoice>?
    var answering: HookDecision<Credentials?>?
    var disposing: HookDecision<ResponseDisposition>?
    private let patience: Deadline

    // The end.
    /// Sent after the current exchange, instead of it.
    var replacement: HTTPRequest?
    var replacements = 0
    private var metrics = TaskMetrics()
    /// A failure on this side, which overrides the exchange's.
    var failure: SessionError?
    private var cause = ""
    private var isOver = false
    private var isSuspended = false
    /// Work postponed until the task is resumed.
    private var postponed: (() -> Void)?

    init(_ task: SessionTask, of core: SessionCore) {
        self.core = core
        self.task = task
        patience = Deadline(loop: core.loop)
        exchange = Exchange(session: core.session)
        exchange.downstream = self
        patience.bind(to: self) { $0.decidedTooLate() }
    }

    // MARK: Control

    func begin(_ wanted: HTTPRequest) {
        do throws(SessionError) {
            let url = try core.routing.url(of: wanted)
            // Before any file is opened.
            let (destination, rules) = try core.destination(of: url, within: wanted.timeout)
            self.url = url
            timeout = wanted.timeout
            makeSource(of: wanted.body, on: core.loop) { [weak self] made in
                self?.bodyIsReady(made, for: wanted, to: destination, by: rules)
            }
        } catch {
            end(.failure(error))
        }
    }

    private func bodyIsReady(
        _ made: Result<any UploadSource, SessionError>, for wanted: HTTPRequest, to destination: Destination,
        by rules: ExchangeRules
    ) {
        guard !isOver, let url else { return }
        guard !isSuspended else {
            postponed = { [weak self] in self?.bodyIsReady(made, for: wanted, to: destination, by: rules) }
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
            offersCodings = core.routing.offersCodings(wanted, for: task.purpose)
            cookies = wanted.handlesCookies ? core.cookies : nil
            hasOwnCookies = wanted.has("cookie")
            let message = try core.routing.head(
                of: wanted, to: url, bodyLength: upload.bodyLength(for: wanted.method), offersCodings: offersCodings,
                cookie: hasOwnCookies ? nil : cookies?.field(for: url))
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
        if exchange.isInFlight { _ = exchange.downstreamIsReadable() }
    }

    func suspend() {
        isSuspended = true
        if exchange.isInFlight { exchange.suspend("the program") }
    }

    func resume() {
        isSuspended = false
        if exchange.isInFlight { exchange.resume("the program") }
        if let postponed {
            self.postponed = nil
            postponed()
        }
    }

    /// Not to be called from the exchange's callbacks.
    func fail(_ error: SessionError) {
        guard !isOver else { return }
        if failure == nil { failure = error }
        if exchange.isInFlight { return exchange.cancel("the program") }
        end(.failure(failure ?? error))
    }

    private func end(_ outcome: SessionTask.Outcome) {
        guard !isOver else { return }
        isOver = true
        patience.clear()
        (redirecting, answering, disposing) = (nil, nil, nil)
        postponed = nil
        if case .failure = outcome { receiver.abandon() }
        source?.close()
        source = nil
        core.ended(task, metrics: metrics, outcome)
    }

    func collect(_ record: borrowing TaskRecord) {
        metrics.add(record)
        cause = record.failure ?? ""
    }

    func report() { task.report(progress) }

    // MARK: Decisions

    /// Asks a hook. `then` runs on the loop once it has decided, and while the task isn't suspended.
    func decide<Choice>(
        _ hook: @escaping @Sendable () async -> Choice, then: @escaping (ProgramDownstream) -> Void
    ) -> HookDecision<Choice> {
        patience.set(afterNanoseconds: core.routing.patience.nanoseconds)
        return HookDecision(on: core.loop, hook) { [weak self] in
            guard let self, !isOver else { return }
            patience.clear()
            guard isSuspended else { return then(self) }
            postponed = { [weak self] in self.map(then) }
        }
    }

    private var isUndecided: Bool { isDeciding || disposing?.isPending == true }

    private func decidedTooLate() { if isUndecided { fail(tooLate) } }

    private var tooLate: SessionError {
        .timedOut("a hook of the session didn't decide within \(core.routing.patience) (responseTimeout)")
    }

    // MARK: The end

    func exchangeEnded(_ ending: ExchangeEnding) {
        if failure == nil { failure = receiver.failure }
        switch ending {
        case .finished(let kept):
            kept?.close()
            if let failure { end(.failure(failure)) } else { finish() }
        case .refused(let failure, let destination):
            // Its own time ran out, since nothing was read meanwhile.
            let error = isUndecided ? tooLate : SessionError(failure, at: destination)
            end(.failure(self.failure ?? error))
        case .cut(_, let reason):
            if failure == nil, replacement != nil { return finish() }
            end(.failure(failure ?? (isUndecided ? tooLate : interruption(by: reason))))
        case .switched(let upstream):
            _ = upstream.end(.abandoned)
            end(.failure(.badResponse("unrequested 101 Switching Protocols")))
        }
    }

    private func interruption(by reason: ExchangeFailure?) -> SessionError {
        let text = "\(url?.authority.description ?? ""): \(cause)"
        if case .nothingMoved? = reason { return .timedOut("\(text) (idleTimeout)") }
        return .connectionLost(text)
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
        guard response != nil else { return end(.failure(.badResponse("no response"))) }
        receiver.finish { [weak self] result in
            guard let self, var response else { return }
            response.metrics = metrics
            end(
                result.map { stored in
                    SessionTask.Result(response: response, body: stored.bytes, file: stored.path)
                })
        }
    }
}

// MARK: - The request's way up

extension ProgramDownstream: Downstream {
    func withRequest(_ body: (borrowing RequestView) -> Void) {
        // The view borrows from a local copy.
        guard let message else { return }
        body(message.view)
    }

    var requestBody: any BodySource { source ?? HeldBody() }
    func wantsRead(_ wanted: Bool) {}
    var guide: any ExchangeGuide { self }
}
