import PinproxyEventLoop

/// Asked once for each connection.
enum RunInquiryState {
    case notBegun
    case inFlight
    /// Nil: it belongs to no run.
    case over(Run?)
}

/// Finds the run of a connection without a token: asks the runs of the client's user (``RunQuestions``). Used on one
/// loop.
final class RunInquiry {
    /// For busy machines. A silent run is awaited once.
    private static let patienceNanoseconds: UInt64 = 2_000_000_000

    /// The oldest first.
    private let runs: [Run]
    /// Open questions by place of the run.
    private var numbers: [Int: UInt64] = [:]
    private var holder: Int?
    private var timer: Timer?
    private var completion: ((Run?) -> Void)?

    /// - Parameter completion: called once, on the loop, after this has returned; never if it returns false, with
    ///   nobody to ask.
    static func begin(
        about socket: UInt64, _ runs: [Run], on loop: EventLoop, _ completion: @escaping (Run?) -> Void
    ) -> Bool {
        let inquiry = RunInquiry(runs)
        let bound = LoopBound(inquiry, on: loop)
        for (place, run) in runs.enumerated() {
            inquiry.numbers[place] = run.ask(about: socket) { isHeld in bound.post { $0.answered(place, isHeld) } }
        }
        guard !inquiry.numbers.isEmpty else { return false }
        inquiry.completion = completion
        inquiry.timer = Timer(loop: loop, owner: inquiry, afterNanoseconds: patienceNanoseconds) { $0.giveUp() }
        return true
    }

    private init(_ runs: [Run]) { self.runs = runs }

    private func answered(_ place: Int, _ isHeld: Bool) {
        // The run must not end before the completion.
        defer { if isHeld { runs[place].stepEnded() } }
        guard numbers.removeValue(forKey: place) != nil else { return }
        // The latest of nested runs counts.
        if isHeld { holder = max(holder ?? place, place) }
        if numbers.isEmpty { end() }
    }

    private func giveUp() {
        for (place, number) in numbers { runs[place].questions.giveUp(number) }
        numbers = [:]
        end()
    }

    private func end() {
        timer = nil
        let completion = completion
        self.completion = nil
        completion?(holder.map { runs[$0] })
    }
}
