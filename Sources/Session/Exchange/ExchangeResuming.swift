import EventLoop
import HTTPWire
import Transport

/// Downloads that break off, and are continued so that the one who asked notices nothing but a pause.
extension Exchange {
    /// Takes note of what is needed to ask for the rest of the response whose final head was found, if there may be one.
    func prepareToResume(_ response: ResponseTraits, of upstream: any Upstream) {
        guard response.status == 200, method == .get, !upstream.hasWholeResponse,
            rules?.session.resume != false
        else { return }
        upstream.withResponse { view in
            let head = view.head
            let bytes = view.bytes
            downstream.withSentHead { sent in
                resumption = Resumption(ResponseView(head, bytes), to: sent, pauses: session.resumptionPauses, on: session.loop)
            }
        }
    }

    /// Whether the rest of the response that broke off may be asked for: by the configuration in force, too.
    func takeBreak() -> ExchangeState.Resumption {
        guard let resumption, let upstream, let destination, !destination.origin.isRetired, inspection?.isReleasing != true
        else { return .impossible }
        return .possible(progressed: resumption.broke(after: upstream.responseCarried))
    }

    /// Obtains another connection, after a pause, to ask for the rest over it.
    func reopen() {
        guard let resumption else { return }
        record.goesOn()
        dropUpstream()
        clearDeadline()
        let pause = resumption.nextTry()
        session.hooks.broke?(
            record, ResponseBreak(offset: resumption.passed, length: resumption.length, pauseNanoseconds: pause, cause: cause))
        guard pause > 0 else { return reconnect() }
        resumption.pause.bind(to: self) { exchange in exchange.whileHeld { exchange.reconnect() } }
        resumption.pause.set(afterNanoseconds: pause)
    }

    private func reconnect() {
        guard destination?.origin.isRetired == false else {
            let cause = "the configuration has changed since the download began"
            return happened(.upstreamFailed(isFinal: true), because: .bodyBroke(cause))
        }
        open(fresh: true)
    }

    /// Writes the request for the rest in the place of the one that was sent.
    func askForRest(over upstream: any Upstream, _ resumption: Resumption, to destination: Destination) {
        session.headScratch.removeAll(keepingCapacity: true)
        guard let request = try? resumption.requestForRest() else { return }
        upstream.writeHead(
            of: request.view, to: destination, via: nil, edits: freshAuthorization(), into: &session.headScratch)
        downstream.beginAgain(head: &session.headScratch, keepsBody: false)
    }

    /// Judges the answer to that.
    func foundRest(_ response: ResponseTraits) {
        guard let upstream, let resumption else { return }
        if response.isInterim { return upstream.dropHead() }
        // What a long download was begun with may have expired.
        if response.status == 401, let itinerary, challenge(itinerary) != nil {
            return happened(.head(.notNow), because: .bodyBroke("the origin asks for credentials again"))
        }
        if let itinerary { acceptedAnswer(of: itinerary) }
        var answer = Resumption.Answer.another("the origin changed the protocol")
        upstream.withResponse { answer = resumption.judge($0, at: session.unixTime()) }
        switch answer {
        case .rest: happened(.head(.rest))
        case .notNow(let cause, let wait):
            resumption.postpone(wait)
            happened(.head(.notNow), because: .bodyBroke(cause))
        case .another(let cause): happened(.head(.another), because: .bodyBroke(cause))
        }
    }

    /// What follows the head goes after what was passed on before.
    func takeUp() {
        resumption?.goesOn()
        session.headScratch.removeAll(keepingCapacity: true)
        upstream?.beginResponse(head: &session.headScratch, .final, coding: .asReceived)
        passResponse(readable: false)
    }
}

extension UpstreamFailure {
    /// To try again would be no use, or wrong.
    var isFinal: Bool {
        switch self {
        case .blocked, .unknownAddress, .itself, .clientCertificate, .refused, .cellularForbidden, .parentRefused: true
        case .unresolved, .unreachable, .timedOut, .parentFailed, .tls, .noNetwork, .noDescriptors, .local: false
        }
    }
}
