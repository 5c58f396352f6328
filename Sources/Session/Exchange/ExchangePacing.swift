import HTTPWire

/// Bodies that drip: something moves, and less than `minimum_rate` asks for.
extension Exchange {
    /// Bytes of the exchange that moved, in both directions.
    var moved: UInt64 {
        downstream.requestCarried &+ bytesDown(upstream?.responseCarried ?? 0) &+ UInt64(inspection?.released ?? 0)
    }

    /// A body is on its way, and no rule slows it down.
    var isPaced: Bool { state.movesBody && !(throttle != nil && state.passesRequest) }

    /// A stream of events may be as slow as the events are.
    func exemptStreams(_ response: borrowing ResponseView) {
        if response.isStream { clock.rate = nil }
    }

    /// Ends the exchange, for the side that is waited for.
    func dripped() {
        guard let rate = clock.rate else { return }
        switch state.phase {
        case .awaiting where state.request == .moving: happened(.deadline, because: .requestDripped(rate))
        case .awaiting: happened(.deadline, because: .requestTakenSlowly(rate))
        case .responding where inspection?.isReleasing == true || upstream?.hasPassedAll == false:
            happened(.deadline, cause: "the client took less of the response than \(rate)")
        default: broke("the origin sent less of the response than \(rate)")
        }
    }
}
