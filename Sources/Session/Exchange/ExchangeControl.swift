package import PinproxyTransport

/// Events of both sides, and control of a running exchange.
extension Exchange {
    // MARK: Events

    /// The client has sent something, or ended. False: the downstream handles it.
    package func downstreamIsReadable() -> Bool {
        if state.isSuspended {
            downstream.wantsRead(false)
            return true
        }
        guard state.passesRequest else { return state.request == .abandoned && state.phase != .connecting }
        happened(.requestResumed)
        happened(passRequest(readable: true))
        return true
    }

    /// The client ended or failed out of turn.
    package func downstreamIsGone(_ error: StreamError) { happened(downstreamIsGone(error.description)) }

    package func downstreamIsWritable() {
        if state.isSuspended { return }
        switch state.phase {
        case .interim:
            happened(passResponse(readable: false))
            receiveHead(readable: false)
        case .responding, .switching: happened(passResponse(readable: false))
        case .idle, .connecting, .awaiting, .holding, .judging: break
        }
    }

    package func upstreamIsReadable() {
        whileHeld {
            if state.isSuspended { return upstream?.wantsRead(false) ?? () }
            switch state.phase {
            case .awaiting: receiveHead(readable: true)
            case .responding: happened(passResponse(readable: true))
            case .holding: happened(keepResponse(readable: true))
            case .idle, .connecting, .interim, .switching, .judging: upstream?.wantsRead(false)
            }
        }
    }

    package func upstreamIsWritable() { whileHeld { happened(passRequest(readable: false)) } }

    // MARK: Control

    /// Stops reading on both sides, and the clock, until ``resume(_:)``. `cause` says who did it, for hooks.
    package func suspend(_ cause: String) {
        guard isInFlight, !state.isSuspended else { return }
        happened(.suspend)
        session.hooks.suspended?(record, cause)
    }

    package func resume(_ cause: String) {
        guard isInFlight, state.isSuspended else { return }
        session.hooks.resumed?(record, cause)
        happened(.resume)
        guard upstream != nil else { return }
        happened(passRequest(readable: false))
        switch state.phase {
        case .responding where responseBody == nil: happened(release())
        case .interim, .responding, .switching: downstreamIsWritable()
        case .awaiting: receiveHead(readable: false)
        case .holding: happened(keepResponse(readable: false))
        case .idle, .connecting, .judging: break
        }
    }

    /// Ends both sides so that a partial response isn't taken for a whole one.
    /// - Parameters:
    ///   - cause: who cancels and why, for the log.
    ///   - isTold: answer a client without a response; many clients retry after a silent end.
    package func cancel(_ cause: String, isTold: Bool = false) {
        happened(.cancel(isTold: isTold), because: .cancelled(cause))
    }

    func pause() {
        downstream.wantsRead(false)
        upstream?.wantsRead(false)
        clearDeadline()
    }

    func proceed() {
        keepTime()
        guard let upstream else { return }
        downstream.wantsRead(true)
        upstream.wantsRead(true)
    }
}
