import Transport

/// What the two doors, and those who may, tell a running exchange.
extension Exchange {
    // MARK: Events

    /// The client has sent something, or ended.
    package func downstreamIsReadable() {
        if state.isSuspended { return downstream.wantsRead(false) }
        if state.passesRequest {
            happened(.requestResumed)
            return passRequest(readable: true)
        }
        if state.request == .abandoned, state.phase != .connecting { return }
        if let error = downstream.receiveAhead() { downstreamIsGone(error.description) }
    }

    /// A write to the client may go on.
    package func downstreamIsWritable() {
        if state.isSuspended { return }
        switch state.phase {
        case .interim:
            passResponse(readable: false)
            if state.phase == .awaiting { lookForNextHead() }
        case .responding, .switching: passResponse(readable: false)
        case .idle, .connecting, .awaiting, .holding, .judging: break
        }
    }

    package func upstreamIsReadable() {
        whileHeld {
            if state.isSuspended { return upstream?.wantsRead(false) ?? () }
            switch state.phase {
            case .awaiting: receiveHead()
            case .responding, .holding: passResponse(readable: true)
            case .idle, .connecting, .interim, .switching, .judging: upstream?.wantsRead(false)
            }
        }
    }

    /// The request can't be sent to its end.
    package func requestFailed(_ failure: ExchangeFailure) { happened(.requestMalformed, because: failure) }

    package func upstreamIsWritable() { whileHeld { passRequest(readable: false) } }

    // MARK: Control

    /// Stops reading on both sides, and the clock, until ``resume(_:)``.
    /// - Parameter cause: who wants it, for those who are told.
    package func suspend(_ cause: String) {
        guard isUnderWay, !state.isSuspended else { return }
        happened(.suspend)
        session.hooks.suspended?(record, cause)
    }

    /// - Parameter cause: who wants it, for those who are told.
    package func resume(_ cause: String) {
        guard isUnderWay, state.isSuspended else { return }
        session.hooks.resumed?(record, cause)
        happened(.resume)
    }

    /// Ends both sides so that nobody takes a part for the whole.
    /// - Parameters:
    ///   - cause: who wants it, and why, for the log.
    ///   - isTold: the one who asked is told, if nothing of a response was passed on: an end without a word is taken
    ///     for an accident, after which many clients ask again.
    package func cancel(_ cause: String, isTold: Bool = false) {
        happened(.cancel(isTold: isTold), because: .cancelled(cause))
    }

    func pause() {
        downstream.wantsRead(false)
        upstream?.wantsRead(false)
        clearDeadline()
    }

    func goOn() {
        keepTime()
        guard let upstream else { return }
        downstream.wantsRead(true)
        upstream.wantsRead(true)
        passRequest(readable: false)
        switch state.phase {
        case .interim, .responding, .switching: downstreamIsWritable()
        case .awaiting: lookForNextHead()
        case .holding: passResponse(readable: false)
        case .idle, .connecting, .judging: break
        }
    }
}
