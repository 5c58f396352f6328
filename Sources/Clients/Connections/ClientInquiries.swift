/// What others are asked about a client, once in the life of its connection.
struct ClientInquiries {
    /// The processes at the other end, for a decision.
    var isPeerAsked = false
    /// The same, for the log or the list of tasks.
    var isPeerLookedFor = false
    /// Whether the connection belongs to a run of the client's user.
    var runs = RunInquiryState.notBegun

    var run: Run? { if case .over(let run) = runs { run } else { nil } }
    var isAwaitingRuns: Bool { if case .underWay = runs { true } else { false } }
}
