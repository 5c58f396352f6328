import Testing

/// The programs that all tests of a suite share, where one set serves a whole table of cases.
struct SharedBed: Sendable {
    let bed: TestBed
    let proxy: ProxyProcess
    /// The port of the origin that the suite set up, and its second one if it has two.
    let originPort: UInt16
    var secondOriginPort: UInt16 = 0
    /// The Python origins, over TLS and plain, where the suite has them.
    var origin: PythonPeer?
    var plainOrigin: PythonPeer?
    /// That of HTTP/1.1, where `origin` speaks HTTP/2.
    var http1Origin: PythonPeer?
    /// Of other origins, by their names.
    var ports: [String: UInt16] = [:]
}

/// Sets a suite's programs up before its first test and ends them after its last.
struct SharedBedTrait: SuiteTrait, TestScoping {
    let prepare: @Sendable (TestBed) async throws -> SharedBed

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed)
            try await TestBed.$shared.withValue(shared) { try await function() }
        }
    }
}

extension Trait where Self == SharedBedTrait {
    static func sharedBed(_ prepare: @escaping @Sendable (TestBed) async throws -> SharedBed) -> Self {
        Self(prepare: prepare)
    }
}

/// The programs of the running suite.
func sharedBed() throws -> SharedBed {
    try #require(TestBed.shared, "the suite lacks the sharedBed trait")
}
