internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyEventLoop
internal import PinproxyHTTPWire
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession
internal import Synchronization

/// The proxy's verdict on a stored response.
struct ResponseJudgement {
    enum Outcome {
        /// No rule judges it, for this reason.
        case unjudged(String)
        case passed
        /// A rewritten body of this many bytes is forwarded.
        case rewritten(Int)
        case refused(Rehearsal.Answer)
        /// It is forwarded and logged.
        case reported(Rehearsal.Answer)
    }

    let response: StoredResponse
    let outcome: Outcome
    let error: ResponseSerializationError?
    /// How the stored response differs from the sent one.
    let remark: String?

    var isRefused: Bool { if case .refused = outcome { true } else { false } }

    private init(
        _ response: StoredResponse, _ outcome: Outcome, _ error: ResponseSerializationError? = nil,
        remark: String? = nil
    ) {
        (self.response, self.outcome, self.error, self.remark) = (response, outcome, error, remark)
    }

    /// For a response that is not judged, for this reason.
    init(_ response: StoredResponse, unjudged reason: String) { self.init(response, .unjudged(reason)) }

    /// - Parameter inspectedBody: `limits.inspected_body`.
    init(
        _ response: StoredResponse, by rules: ExchangeRules?, method name: String, path: String,
        for decision: Rehearsal.Decision,
        inspectedBody: Int, bodies: any BodyExecutor
    ) {
        guard let rules, let judge = rules.judge else {
            self.init(response, unjudged: "no rule says what it must be")
            return
        }
        let method: PinproxyHTTPWire.Method = name == "HEAD" ? .head : .other
        let head = response.head(answering: method)
        let remark = response.remark(answering: method)
        let verdict: BodyVerdict
        do throws(BodyWorkFailure) {
            let judged = judge.verdict(on: head, inspectedBody: inspectedBody)
            verdict = try Self.verdict(judged, on: response.body, of: decision.host.name, by: bodies)
        } catch {
            // A rule that only reports doesn't refuse an unknown result.
            self.init(
                response,
                judge.isEnforced ? .refused(Rehearsal.Answer(error, for: decision.host)) : .unjudged(error.cause),
                remark: remark)
            return
        }
        switch verdict {
        case .pass: self.init(response, .passed, remark: remark)
        case .rewrite(let body): self.init(response, .rewritten(body.count), remark: remark)
        case .refuse(let error):
            let answer = Rehearsal.Answer(
                error, by: rules.source(of: error), for: decision.host, entry: decision.entry,
                explainedBy: ExplainCommandLine(
                    decision.host.authority, method: name, path: String(path.prefix { $0 != "?" })),
                isEnforced: judge.isEnforced)
            let isCoding = if case .undecodable = error.reason { true } else { false }
            self.init(
                response, judge.isEnforced ? .refused(answer) : .reported(answer), error,
                remark: remark ?? (isCoding ? Self.decodedByCurl : nil))
        }
    }

    private static let decodedByCurl =
        "curl --compressed stores a decoded body with the head of a coded one; store it without that option"

    private static func verdict(
        _ head: HeadVerdict, on body: [UInt8], of host: String, by bodies: any BodyExecutor
    ) throws(BodyWorkFailure) -> BodyVerdict {
        switch head {
        case .refuse(let error): .refuse(error)
        case .refuseUnlessEmpty(let error): body.isEmpty ? .pass : .refuse(error)
        case .pass(let limit):
            limit.flatMap { body.count > $0 ? .refuse(.tooLong(limit: $0)) : nil } ?? .pass
        case .hold(let judgement, _): try bodies.wait(for: judgement, on: body, of: host)
        }
    }

    // MARK: For people

    func lines(_ palette: Palette) -> [String] {
        let bytes = Count(response.body.count, "byte")
        let what = "The response of \(response.file.printable) (status \(response.status), \(bytes) of body)"
        return ["", "\(what):"] + outcomeLines(palette) + (remark.map { ["  Note: \($0)"] } ?? [])
    }

    private func outcomeLines(_ palette: Palette) -> [String] {
        switch outcome {
        case .unjudged(let reason): return ["  Not judged: \(reason)"]
        case .passed: return ["  \(palette.paint("Passed", .passed)) as it is"]
        case .rewritten(let length):
            return [
                """
                  \(palette.paint("Rewritten", .passed)): null values are removed, which leaves \
                \(Count(length, "byte"))
                """
            ]
        case .refused(let answer):
            let refused = palette.paint("Refused", .failed)
            return ["  \(refused): a client gets \(answer.status) \(answer.title.printable(longest: 1000))", ""]
                + answer.text.printableLines
        case .reported(let answer):
            let reported = palette.paint("Passed, and reported", .reported)
            return [
                "  \(reported) (enforcement: report); enforced, a client would get \(answer.status) "
                    + answer.title.printable(longest: 1000), "",
            ] + answer.text.printableLines
        }
    }

    // MARK: For programs

    struct Report: Encodable {
        struct Finding: Encodable {
            let code: Int
            let cause: String
            let expected: String
            let received: String
            let line: Int?
            let column: Int?

            init(_ error: ResponseSerializationError) {
                (code, cause, expected, received) = (error.code.rawValue, "\(error)", error.expected, error.received)
                (line, column) = (error.place?.line, error.place?.column)
            }
        }
        let file: String
        let status: Int
        let outcome: String
        let reason: String?
        let finding: Finding?
        let refusal: RefusalReport?
        let remark: String?
    }

    var report: Report {
        var (name, reason, refusal) = ("passed", String?.none, RefusalReport?.none)
        switch outcome {
        case .unjudged(let why): (name, reason) = ("unjudged", why)
        case .passed: break
        case .rewritten: name = "rewritten"
        case .refused(let answer): (name, refusal) = ("refused", RefusalReport(answer))
        case .reported(let answer): (name, refusal) = ("reported", RefusalReport(answer))
        }
        return Report(
            file: response.file, status: response.status, outcome: name, reason: reason,
            finding: error.map(Report.Finding.init),
            refusal: refusal, remark: remark)
    }
}

extension BodyExecutor {
    /// Waits for the result: a command has nothing else to do.
    fileprivate func wait<Work: BodyWork>(
        for work: Work, on body: [UInt8], of host: String
    ) throws(BodyWorkFailure) -> Work.Outcome {
        let awaited = Awaited<Result<Work.Outcome, BodyWorkFailure>>()
        _ = perform(work, on: body, of: host) { awaited.came($0) }
        return try awaited.wait().get()
    }
}

/// A value that another thread provides once.
private final class Awaited<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let isThere = Semaphore()

    func came(_ value: Value) {
        self.value.withLock { $0 = value }
        isThere.signal()
    }

    func wait() -> Value {
        while true {
            isThere.wait()
            if let value = value.withLock(\.self) { return value }
        }
    }
}

struct RefusalReport: Encodable {
    let status: Int
    let title: String
    let details: String

    init(_ answer: Rehearsal.Answer) { (status, title, details) = (answer.status, answer.title, answer.text) }
}
