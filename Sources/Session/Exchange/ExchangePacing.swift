import PinproxyHTTPWire

/// Bodies slower than `minimum_rate`.
extension Exchange {
    /// Bytes moved in both directions.
    var moved: UInt64 {
        let down = inspection.map { $0.moved &+ $0.taken } ?? responseSink?.carried ?? 0
        return (requestSink?.carried ?? 0) &+ down
    }

    /// A body is in flight that no rule slows down.
    var isPaced: Bool { state.movesBody && !(throttle != nil && state.passesRequest) }

    /// Event streams may be slow.
    func exemptStreams(_ response: borrowing ResponseView) {
        if response.isStream { clock.rate = nil }
    }

    /// Ends the exchange, blaming the slow side.
    func dripped() {
        guard let rate = clock.rate else { return }
        switch state.phase {
        case .awaiting where state.request == .moving: happened(.deadline, because: .requestDripped(rate))
        case .awaiting: happened(.deadline, because: .requestTakenSlowly(rate))
        case .responding where state.isBlocked:
            happened(.deadline, because: .bodyBroke("the client took less of the response than \(rate)"))
        default: happened(broke(.bodyBroke("the origin sent less of the response than \(rate)")))
        }
    }
}
