/// Questions about a client, asked once for each connection.
struct ClientInquiries {
    /// The processes at the other end, for a decision.
    var isPeerAsked = false
    /// For the log or the list of tasks.
    var isPeerLookedFor = false
    /// Asks which run of the client's user it belongs to.
    var runs = RunInquiryState.notBegun

    var run: Run? { if case .over(let run) = runs { run } else { nil } }
    var isAwaitingRuns: Bool { if case .inFlight = runs { true } else { false } }
}
