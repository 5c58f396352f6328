import Foundation
import Testing

/// Rules, with programs other than curl.
@Suite(.sharedBed(RuleClientBed.prepare), .timeLimit(.minutes(5)))
struct RuleClientTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func fetch(_ program: String, _ path: String) async throws -> Run {
        let url = shared.url + path
        switch program {
        case "node":
            return try await shared.bed.run(
                [
                    "node", PythonPeer.path("fetch.mjs"), shared.proxy.address, "\(shared.proxy.port)",
                    shared.proxy.authority, url,
                ])
        default:
            let interpreter = program == "requests" ? PythonPeer.pythonWithPackages : PythonPeer.python
            return try await shared.bed.run(
                [interpreter, PythonPeer.path("fetch.py"), program, url], environment: shared.proxy.clientEnvironment)
        }
    }

    @Test(arguments: ["urllib", "requests", "node"])
    func aRequestIsShapedAndItsResponseJudged(program: String) async throws {
        let right = try await fetch(program, "/received/shaped")
        #expect(right.output.contains("X-Client: fleet") && right.output.contains("/received/shaped?a=1"), "\(right)")
        let rewritten = try await fetch(program, RuleBed.answer("nulls", RuleBed.response("[1, null]")))
        #expect(rewritten.succeeded && rewritten.output.contains("[1]"), "\(rewritten)")
        let wrong = try await fetch(program, RuleBed.answer("json", RuleBed.response("{no json}")))
        #expect(!wrong.output.contains("{no json}") && "\(wrong)".contains("is not JSON"), "\(wrong)")
    }
}

private enum RuleClientBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await RuleBed.prepare(
            bed,
            rules: [
                "{path: /received/shaped, request: {headers: {X-Client: fleet}, parameters: {a: 1}}}",
                "{path: /answer/json/**, response: {serializer: json}}",
                "{path: /answer/nulls/**, response: {serializer: json, remove_null_values: true}}",
            ])
    }
}
