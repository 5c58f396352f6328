import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTransport

/// Applies a host's response rules; unused without any.
extension Exchange {
    // MARK: The head

    func judgeHead() -> ExchangeState.Head {
        guard let judge = rules?.judge, let upstream, let destination else { return .final }
        rules?.counts.countResponse()
        var verdict = HeadVerdict.pass(limit: nil)
        upstream.withResponse {
            verdict = judge.verdict(
                on: PinproxySerialization.ResponseHead($0), inspectedBody: destination.terms.limits.inspectedBody)
        }
        switch verdict {
        case .pass(limit: nil): return .final
        case .refuse(let error):
            guard refuses(error) else { return .final }
            return .unacceptable
        case .pass:
            self.verdict = verdict
            return .final
        case .hold(let judgement, _):
            self.verdict = verdict
            return judge.isEnforced || judgement.rewrites ? .held : .final
        case .refuseUnlessEmpty:
            self.verdict = verdict
            return judge.isEnforced ? .held : .final
        }
    }

    /// Whether the rules refuse `101 Switching Protocols`, as they can't judge what follows. Sets the failure.
    func refusesUpgrade(_ response: ResponseTraits) -> Bool {
        guard rules?.judge != nil else { return false }
        record.began(response)
        return judgeHead() == .unacceptable
    }

    /// Reports what the rules find wrong. True if the client is refused; sets the failure.
    private func refuses(_ error: ResponseSerializationError) -> Bool {
        guard let rules, let judge = rules.judge else { return false }
        session.hooks.judged?(ResponseFinding(record, by: rules), error)
        guard judge.isEnforced else { return false }
        failure = .unacceptable(error, source: rules.source(of: error))
        return true
    }

    // MARK: The body

    func inspect(_ response: borrowing ResponseView, from body: any BodySource) {
        guard let verdict, let destination, let judge = rules?.judge else { return }
        self.verdict = nil
        let question: ResponseInspection.Question
        var limit: Int?
        switch verdict {
        case .hold(let judgement, let most): (question, limit) = (.judgement(judgement), most)
        case .refuseUnlessEmpty(let error): question = .emptiness(error)
        case .pass(let most): (question, limit) = (.length, most)
        case .refuse: return
        }
        inspection = ResponseInspection(
            question, of: body, limit: limit, inspectedBody: destination.terms.limits.inspectedBody,
            isEnforced: judge.isEnforced, held: state.phase == .holding ? OwnedResponse(response) : nil,
            budget: session.slabs.budget)
    }

    func hold() -> ExchangeState.Event? {
        guard let upstream else { return nil }
        noteLocation()
        upstream.withResponse { inspect($0, from: upstream.responseBody) }
        return keepResponse(readable: false)
    }

    func keepResponse(readable: Bool) -> ExchangeState.Event? {
        guard let inspection else { return nil }
        let outcome = inspection.keep(readable: readable)
        switch inspection.takeFinding() {
        case nil: break
        case .unjudged: return accept()
        case .notKept: return notJudged(noBudget)
        // Rules that only report pass the held response on unchanged.
        case .refused(let error): return refuses(error) ? .judged(isAccepted: false) : accept()
        }
        switch outcome {
        case .waiting, .blocked: return .responseMoved(isBlocked: false)
        case .ended: return .responseEnded
        case .truncated(let why): return broke(.bodyBroke(why))
        case .failed(let failure): return broke(failure)
        case .sourceFailed(let error), .sinkFailed(let error): return broke(.bodyBroke(error.description))
        case .malformed(let error):
            failure = .badResponse(error)
            return .responseBroke(begun: false)
        }
    }

    /// The event of an inspected, forwarded body; nil: as without inspection.
    func eventForwarding(_ inspection: ResponseInspection, _ outcome: BodyMove) -> ExchangeState.Event? {
        if case .refused(let error)? = inspection.takeFinding(), refuses(error), let responseSink {
            return brokeForGood(responseSink)
        }
        // Judging a forwarded body doesn't delay the client.
        if case .ended = outcome { judgeForwarded(inspection) }
        return nil
    }

    func judgeBody() -> ExchangeState.Event? {
        guard let inspection, case .judgement(let judgement) = inspection.question,
            let (body, reservation) = inspection.body
        else { return accept() }
        inspection.ticket = session.bodies.perform(
            judgement, on: body, of: hostOfBody, holding: reservation, loop: session.loop
        ) { [weak self, weak inspection] outcome in
            guard let self, let inspection, self.inspection === inspection, state.phase == .judging else { return }
            whileHeld {
                switch outcome {
                case .success(let verdict): self.happened(self.judged(verdict))
                case .failure(let failure): self.happened(self.notJudged(failure))
                }
            }
        }
        return nil
    }

    /// For fair sharing of the room for bodies.
    private var hostOfBody: String { destination?.authority.host ?? "" }

    private var noBudget: BodyWorkFailure { .noBudget(limit: session.slabs.budget.limit) }

    /// A rule that only reports holds nothing back that can't be judged.
    private func notJudged(_ failure: BodyWorkFailure) -> ExchangeState.Event {
        guard rules?.judge?.isEnforced != false else { return accept() }
        self.failure = .notJudged(failure)
        return .judged(isAccepted: false)
    }

    private func judged(_ verdict: BodyVerdict) -> ExchangeState.Event {
        switch verdict {
        case .pass: return accept()
        case .rewrite(let body):
            guard let head = inspection?.original?.withBody(of: body.count) else {
                failure = .bodyBroke("its head can't be written for another body")
                return .judged(isAccepted: false)
            }
            guard inspection?.replace(with: body, after: head) != false else { return notJudged(noBudget) }
            return accept()
        case .refuse(let error): return refuses(error) ? .judged(isAccepted: false) : accept()
        }
    }

    private func accept() -> ExchangeState.Event {
        inspection?.open()
        return .judged(isAccepted: true)
    }

    func release() -> ExchangeState.Event? {
        guard let inspection, let original = inspection.original, let destination, let downstream else { return nil }
        forgetReplay()
        responseSink = downstream.respond(
            original.view, .final, requestSent: state.request == .sent, to: destination, edits: responseEdits,
            from: inspection)
        responseBody = inspection
        return passResponse(readable: false)
    }

    private func judgeForwarded(_ inspection: ResponseInspection) {
        guard case .judgement(let judgement) = inspection.question, inspection.original == nil,
            let (body, reservation) = inspection.body, let rules, let told = session.hooks.judged
        else { return }
        let finding = ResponseFinding(record, by: rules)
        _ = session.bodies.perform(
            judgement, on: body, of: hostOfBody, holding: reservation, loop: session.loop
        ) { outcome in
            if case .success(.refuse(let error)) = outcome { told(finding, error) }
        }
    }
}
