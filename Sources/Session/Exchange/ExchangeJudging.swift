import HTTPWire
import Serialization
import Transport

/// What the response rules of a host do to an exchange. None of it is reached where there are none.
extension Exchange {
    // MARK: The head

    /// What the rules say of the final head that was found.
    func judgeHead() -> ExchangeState.Head {
        guard let judge = rules?.judge, let upstream, let destination else { return .final }
        rules?.counts.countResponse()
        var verdict = HeadVerdict.pass(limit: nil)
        upstream.withResponse {
            verdict = judge.verdict(
                on: Serialization.ResponseHead($0), inspectedBody: destination.terms.limits.inspectedBody)
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

    /// Whether the rules refuse `101 Switching Protocols`, the failure being set: what follows it they can't judge.
    func refusesUpgrade(_ response: ResponseTraits) -> Bool {
        guard rules?.judge != nil else { return false }
        record.began(response)
        return judgeHead() == .unacceptable
    }

    /// Tells of what the rules find wrong.
    /// - Returns: whether the client is to be refused, the failure being set.
    private func refuses(_ error: ResponseSerializationError) -> Bool {
        guard let rules, let judge = rules.judge else { return false }
        session.hooks.judged?(ResponseFinding(record, by: rules), error)
        guard judge.isEnforced else { return false }
        failure = .unacceptable(error, source: rules.source(of: error))
        return true
    }

    // MARK: The body

    /// Begins to look at the body whose head has been written.
    func inspect(_ response: borrowing ResponseView, _ coding: ResponseCoding, headLength: Int) {
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
        let isChunked = coding == .chunked || (coding == .asReceived && response.head.framing == .chunked)
        let isHeld = state.phase == .holding
        inspection = ResponseInspection(
            question, kept: KeptResponse(headLength: headLength, isChunked: isChunked), limit: limit,
            inspectedBody: destination.terms.limits.inspectedBody, isForwarded: !isHeld, isEnforced: judge.isEnforced,
            original: isHeld && question.rewrites ? OwnedResponse(response) : nil, client: downstream,
            slabs: session.slabs)
    }

    /// Passes on what is there, by way of the inspection.
    /// - Returns: nil if all that follows from it has been done.
    func passResponse(
        of upstream: any Upstream, through inspection: ResponseInspection, readable: Bool
    ) -> MessagePipe.Outcome? {
        if inspection.isReleasing {
            switch inspection.release() {
            case .done: break
            case .blocked:
                happened(.responseMoved)
                return nil
            case .failed(let error):
                downstreamIsGone(error.description)
                return nil
            }
        }
        let outcome = upstream.passResponse(to: inspection, readable: readable)
        switch inspection.takeFinding() {
        case nil: break
        case .unjudged:
            accept()
            return nil
        case .notKept:
            notJudged(noBudget)
            return nil
        case .refused(let error):
            if refuses(error) {
                let begun = upstream.responseCarried > 0
                if state.phase == .responding { broke(error.description, begun: begun) } else { happened(.judged(isAccepted: false)) }
                return nil
            }
            // What was held back goes on as it came.
            guard state.phase == .responding else {
                accept()
                return nil
            }
        }
        // Nobody waits for the judgement of what has been forwarded.
        if case .ended = outcome, state.phase == .responding { judgeForwarded(inspection) }
        return outcome
    }

    /// The response that is held back is whole.
    func judgeBody() {
        guard let inspection, case .judgement(let judgement) = inspection.question,
            let (body, reservation) = inspection.body
        else { return accept() }
        inspection.ticket = session.bodies.perform(
            judgement, on: body, of: hostOfBody, holding: reservation, loop: session.loop
        ) { [weak self, weak inspection] outcome in
            guard let self, let inspection, self.inspection === inspection, state.phase == .judging else { return }
            whileHeld {
                switch outcome {
                case .success(let verdict): self.judged(verdict)
                case .failure(let failure): self.notJudged(failure)
                }
            }
        }
    }

    /// Who shares the room for bodies fairly with others.
    private var hostOfBody: String { destination?.authority.host ?? "" }

    private var noBudget: BodyWorkFailure { .noBudget(limit: session.slabs.budget.limit) }

    /// A rule that only reports holds nothing back for what isn't known.
    private func notJudged(_ failure: BodyWorkFailure) {
        guard rules?.judge?.isEnforced != false else { return accept() }
        happened(.judged(isAccepted: false), because: .notJudged(failure))
    }

    private func judged(_ verdict: BodyVerdict) {
        switch verdict {
        case .pass: accept()
        case .rewrite(let body):
            guard let message = rewritten(body) else {
                return happened(
                    .judged(isAccepted: false), because: .bodyBroke("its head can't be written for another body"))
            }
            guard inspection?.replace(with: message) != false else { return notJudged(noBudget) }
            accept()
        case .refuse(let error):
            if refuses(error) { happened(.judged(isAccepted: false)) } else { accept() }
        }
    }

    /// Releases the bytes that were kept.
    private func accept() {
        inspection?.open()
        happened(.judged(isAccepted: true))
    }

    /// The whole message with another body.
    private func rewritten(_ body: [UInt8]) -> [UInt8]? {
        guard let destination, let original = inspection?.original?.withBody(of: body.count) else { return nil }
        var message: [UInt8] = []
        _ = downstream.writeHead(
            of: original.view, .final, requestSent: state.request == .sent, to: destination, edits: responseEdits,
            into: &message)
        return message + body
    }

    private func judgeForwarded(_ inspection: ResponseInspection) {
        guard case .judgement(let judgement) = inspection.question, !inspection.wasHeld,
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
