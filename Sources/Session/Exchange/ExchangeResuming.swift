import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

/// Broken downloads, continued so that the client notices only a pause.
extension Exchange {
    /// Keeps what a request for the rest of this response needs, if it may be continued.
    func prepareToResume(_ response: ResponseTraits, of upstream: any Upstream) {
        guard response.status == 200, method == .get, !response.isWhole, rules?.session.resume != false,
            wantedPart == .whole
        else { return }
        upstream.withResponse { view in
            let head = view.head
            let bytes = view.bytes
            withRequest {
                resumption = Resumption(
                    ResponseView(head, bytes), to: $0, pauses: session.resumptionPauses, on: session.loop)
            }
        }
    }

    /// Whether the rest of the broken response may be requested under the configuration in force.
    func takeBreak() -> ExchangeState.Resumption {
        guard let resumption, let upstream, let destination, !destination.origin.isRetired else { return .impossible }
        return .possible(progressed: resumption.broke(after: upstream.responseBody.moved))
    }

    func reopen() -> ExchangeState.Event? {
        guard let resumption else { return nil }
        record.continued()
        dropUpstream()
        clearDeadline()
        let pause = resumption.nextTry()
        session.hooks.broke?(
            record,
            ResponseBreak(
                offset: resumption.passed, length: resumption.length, pauseNanoseconds: pause,
                cause: failure?.cause ?? ""))
        guard pause > 0 else { return reconnect() }
        resumption.pause.bind(to: self) { exchange in exchange.whileHeld { exchange.happened(exchange.reconnect()) } }
        resumption.pause.set(afterNanoseconds: pause)
        return nil
    }

    private func reconnect() -> ExchangeState.Event? {
        guard destination?.origin.isRetired == false else {
            failure = .bodyBroke("the configuration has changed since the download began")
            return .upstreamFailed(isFinal: true)
        }
        return open(fresh: true)
    }

    func askForRest(over upstream: any Upstream, _ resumption: Resumption, to destination: Destination) {
        guard let request = try? resumption.requestForRest() else { return }
        let body = HeldBody()
        requestBody = body
        var edits = rules?.edits ?? HeadEdits()
        edits.append(freshAuthorization())
        requestSink = upstream.send(request.view, to: destination, edits: edits, from: body)
        noteStream(of: upstream)
    }

    func foundRest() -> ExchangeState.Head {
        guard let upstream, let resumption, let status = status(of: upstream) else { return .malformed }
        // The credentials may have expired during a long download.
        if status == 401, let itinerary, challenge(itinerary) != nil {
            takeNextStep(of: itinerary)
            failure = .bodyBroke("the origin requests credentials again")
            return .notNow
        }
        if let itinerary { acceptedAnswer(of: itinerary) }
        var answer = Resumption.Answer.another("the origin changed the protocol")
        upstream.withResponse { answer = resumption.judge($0, at: session.unixTime()) }
        switch answer {
        case .rest: return .rest
        case .notNow(let cause, let wait):
            resumption.postpone(wait)
            failure = .bodyBroke(cause)
            return .notNow
        case .another(let cause):
            failure = .bodyBroke(cause)
            return .another
        }
    }

    private func status(of upstream: any Upstream) -> Int? {
        var status: Int?
        upstream.withResponse { status = $0.head.status }
        return status
    }

    /// Appends the body to what was passed on before.
    func takeUp() -> ExchangeState.Event? {
        guard let upstream else { return nil }
        if let inspection {
            inspection.proceed(with: upstream.responseBody)
        } else {
            responseBody = upstream.responseBody
        }
        return state.phase == .holding ? keepResponse(readable: false) : passResponse(readable: false)
    }
}

extension UpstreamFailure {
    var isFinal: Bool {
        switch self {
        case .blocked, .unknownAddress, .itself, .clientCertificate, .refused, .cellularForbidden, .parentRefused,
            .otherProtocol:
            true
        case .unresolved, .unreachable, .timedOut, .parentFailed, .tls, .noNetwork, .noDescriptors, .local: false
        }
    }
}
