import Testing

/// gRPC through interception with pins, by grpcio on both sides.
@Suite(.sharedBed(GRPCBed.prepare), .timeLimit(.minutes(5)))
struct GRPCTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    @Test func everyKindOfCallWorks() async throws {
        let outcomes = try await shared.grpc("grpc.test", "unary", "empty", "large", "many", "gather", "converse")
        for outcome in outcomes where outcome.event != "gather" {
            #expect(outcome.status == "OK" && outcome.equal == true, "\(outcome)")
        }
        #expect(outcomes[4].status == "OK" && outcomes[4].text == "500 500000", "\(outcomes[4])")
        // Intercepted, and pinned.
        let line = try await shared.proxy.events.first("exchange") {
            $0["path"] == "/test.Calls/Unary" && $0["host"] == "grpc.test"
        }
        #expect(line["pin"] != nil && line["status"] == "200" && line["cause"] == nil, "\(line)")
    }

    @Test func metadataArrives() async throws {
        let outcome = try await shared.grpc("grpc.test", "metadata")[0]
        #expect(
            outcome.metadata == [
                ["x-octets-first-bin", "00ff2c"], ["x-octets-last-bin", "00ff2c"], ["x-text-first", "a, b"],
                ["x-text-last", "a, b"],
            ], "\(outcome)")
    }

    /// A trailers-only response.
    @Test func anErrorOfTheServerArrives() async throws {
        let outcome = try await shared.grpc("grpc.test", "fail")[0]
        #expect(outcome.status == "FAILED_PRECONDITION" && outcome.details == "nö, 100% not", "\(outcome)")
    }

    /// The server learns of the deadline and of the cancellation.
    @Test func deadlinesAndCancellationArrive() async throws {
        let origin = try #require(shared.origin)
        let late = try await shared.grpc("grpc.test", "deadline")[0]
        #expect(late.status == "DEADLINE_EXCEEDED", "\(late)")
        let waiting = try await origin.events.first("waiting")
        #expect(waiting["seconds"].flatMap { Double($0) }.map { (0...1.01).contains($0) } == true, "\(waiting)")
        _ = try await origin.events.first("left")
        let cancelled = try await shared.grpc("grpc.test", "cancel")[0]
        #expect(cancelled.status == "CANCELLED" && cancelled.text == "first", "\(cancelled)")
        _ = try await origin.events.first("left", number: 2)
    }

    @Test func healthChecksWork() async throws {
        let outcome = try await shared.grpc("grpc.test", "health")[0]
        #expect(outcome.status == "OK" && outcome.text == "1 1", "\(outcome)")
    }

    // MARK: Refusals

    /// The program sees the reason; other clients' CONNECT is refused with 502.
    @Test func aPinFailureIsUnavailable() async throws {
        let outcome = try await shared.grpc("wrong.test", "unary")[0]
        #expect(outcome.status == "UNAVAILABLE", "\(outcome)")
        #expect(outcome.details?.contains("pinning failure for wrong.test") == true, "\(outcome)")
        let line = try await shared.proxy.events.first("exchange") {
            $0["host"] == "wrong.test" && $0["method"] == "POST"
        }
        #expect(line["status"] == "502" && line["upstream"] == nil, "\(line)")
        let answer = try await shared.proxy.connect(to: "wrong.test:\(shared.originPort)")
        #expect(answer.status == 502 && answer.reason.contains("pin"), "\(answer)")
    }

    /// A refusal inside the tunnel is a status with its reason.
    @Test func aRefusalByARuleIsAStatus() async throws {
        let outcomes = try await shared.grpc("ruled.test", "unary", "empty")
        for outcome in outcomes {
            #expect(
                outcome.status == "UNAVAILABLE" && outcome.details?.contains("Unacceptable status 200") == true,
                "\(outcome)")
        }
        let line = try await shared.proxy.events.first("exchange") { $0["host"] == "ruled.test" }
        #expect(line["status"] == "502", "\(line)")
    }
}
