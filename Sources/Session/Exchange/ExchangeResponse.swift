import EventLoop
import HTTPWire
import Transport

/// A response on its way from the upstream to the one who asked.
extension Exchange {
    func receiveHead() {
        guard let upstream, let limit = destination?.terms.limits.responseHead else { return }
        let method = method
        repeat {
            var progress = upstream.receiveHead(of: method, limit: limit) {
                record.firstByte(at: session.now)
                happened(.responseBegan)
            }
            while found(progress, on: upstream), state.phase == .awaiting { progress = upstream.nextHead(of: method) }
        } while state.phase == .awaiting && self.upstream === upstream && upstream.holdsBytes
    }

    /// - Returns: whether a head was found, so that another may follow it.
    private func found(_ progress: ResponseHeadProgress, on upstream: any Upstream) -> Bool {
        switch progress {
        case .incomplete: return false
        case .complete(let response):
            if state.asksForRest {
                foundRest(response)
            } else if response.isInterim {
                happened(.head(.interim(isContinue: response.status == 100)))
            } else if response.isUpgrade {
                if rules != nil, refusesUpgrade(response) {
                    happened(.head(.unacceptable))
                } else {
                    happened(.head(.upgrade(isWanted: request.wantsUpgrade)), because: .unaskedUpgrade)
                }
            } else {
                record.began(response)
                happened(.head(finalHead(response, of: upstream)))
            }
            return true
        case .ended(let cause):
            if let refusal = upstream.certificateRefusal(at: session.unixTime()) {
                // In TLS 1.3 this is when an origin says what it thinks of a client certificate.
                happened(.upstreamEnded(resendable: false), because: .unreachable(.clientCertificate(refusal)))
            } else {
                // RFC 9110 section 9.2.2: what is kept for a redirect or a challenge may not be what can be sent twice.
                let isResendable = method.isIdempotent && downstream.canResendRequest
                happened(.upstreamEnded(resendable: isResendable), because: .upstreamClosed(cause))
            }
        case .failed(let failure): happened(.upstreamEnded(resendable: false), because: failure)
        case .notShared: happened(.notShared(resendable: downstream.canResendRequest), because: .upstreamClosed("could not share its response"))
        case .malformed(let error): happened(.head(.malformed), because: .badResponse(error))
        case .tooManyFields: happened(.head(.malformed), because: .tooManyResponseFields)
        case .tooLarge:
            happened(.head(.tooLarge), because: .responseHeadTooLarge(destination?.terms.limits.responseHead ?? 0))
        }
        return false
    }

    /// What becomes of the final head that was found.
    private func finalHead(_ response: ResponseTraits, of upstream: any Upstream) -> ExchangeState.Head {
        if let defect = unaskedPart(response, of: upstream) {
            failure = .badResponse(defect)
            return .malformed
        }
        if let itinerary, let head = followUp(response, itinerary) { return head }
        prepareToResume(response, of: upstream)
        return rules == nil ? .final : judgeHead()
    }

    /// What is wrong with a 206 that the request, as it was sent, didn't ask for.
    private func unaskedPart(_ response: ResponseTraits, of upstream: any Upstream) -> WireError? {
        guard response.status == 206 else { return nil }
        var wanted = itinerary?.request.head.wantedPart ?? request.wantedPart
        if let rules { wanted.apply(rules.edits) }
        var defect: WireError?
        upstream.withResponse { defect = $0.head.defect(answering: wanted, in: $0.bytes) }
        return defect
    }

    func forwardInterim() {
        guard request.takesInterim else {
            upstream?.dropHead()
            return happened(.responseEnded)
        }
        forward(.interim)
    }

    func forward(_ kind: ResponseKind) {
        guard let upstream, let destination, let downstream else { return }
        session.headScratch.removeAll(keepingCapacity: true)
        var coding = ResponseCoding.asReceived
        if kind == .final, clock.rate != nil, !upstream.hasWholeResponse { upstream.withResponse(exemptStreams) }
        if let itinerary, !itinerary.hops.isEmpty { itinerary.location = try? location(relativeTo: itinerary.url) }
        let edits = itinerary == nil ? HeadEdits() : responseEdits
        upstream.withResponse {
            coding = downstream.writeHead(
                of: $0, kind, requestSent: state.request == .sent, to: destination, edits: edits,
                into: &session.headScratch)
            if verdict != nil { inspect($0, coding, headLength: session.headScratch.count) }
        }
        if kind != .interim {
            downstream.forgetReplay()
            resumption?.headLength = session.headScratch.count
        }
        upstream.beginResponse(head: &session.headScratch, kind, coding: coding)
        passResponse(of: upstream, to: downstream, readable: false)
    }

    func passResponse(readable: Bool) {
        guard let upstream, let downstream else { return }
        passResponse(of: upstream, to: downstream, readable: readable)
    }

    private func passResponse(of upstream: any Upstream, to downstream: any Downstream, readable: Bool) {
        let outcome: MessagePipe.Outcome
        if let inspection {
            guard let inspected = passResponse(of: upstream, through: inspection, readable: readable) else { return }
            outcome = inspected
        } else {
            outcome = upstream.passResponse(to: downstream, readable: readable)
        }
        switch outcome {
        case .waiting, .blocked: happened(.responseMoved)
        case .ended: happened(.responseEnded)
        case .truncated: broke(upstream.truncation)
        case .sourceFailed(let error): broke(error.description)
        case .malformed(let error):
            broke(
                "the origin's body is malformed: \(error.message)", begun: upstream.responseCarried > 0,
                because: .badResponse(error))
        case .sinkFailed(let error): downstreamIsGone(error.description)
        }
    }

    /// - Parameter failure: what the client is told, where nothing was passed on.
    func broke(_ cause: String, begun: Bool = true, because failure: ExchangeFailure? = nil) {
        self.failure = failure ?? .bodyBroke(cause)
        happened(.responseBroke(begun: begun, resumption: failure == nil ? takeBreak() : .impossible), cause: cause)
    }

    func lookForNextHead() {
        guard let upstream else { return }
        let method = method
        while state.phase == .awaiting, found(upstream.nextHead(of: method), on: upstream) {}
        if state.phase == .awaiting, upstream.holdsBytes { receiveHead() }
    }

    /// What is changed in the head for the one who asked.
    var responseEdits: HeadEdits { itinerary?.responseEdits ?? HeadEdits() }
}
