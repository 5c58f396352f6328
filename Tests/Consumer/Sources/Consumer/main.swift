import AsyncHTTPClient
import Configuration
import Foundation
import Logging
import MetricsTestKit
import NIOCore
import NIOPosix
import PinnedSession
import PinnedSessionLogging
import PinnedSessionMetrics
import PinnedSessionService
import PinproxyReachability
import PinproxySecurity
import PinproxySerialization
import ServiceLifecycle

// All of it runs on the one thread of NIO's global executor, the server that is asked, too: whatever blocks it for an
// answer waits for ever.
NIOSingletons.groupLoopCountSuggestion = 1
guard NIOSingletons.unsafeTryInstallSingletonPosixEventLoopGroupAsConcurrencyGlobalExecutor() else {
    fatalError("NIO's executor can't be installed")
}

/// Libraries that this process has loaded.
func isLoaded(_ library: String) throws -> Bool {
    try String(contentsOfFile: "/proc/self/maps", encoding: .utf8).contains("/\(library)")
}

func onGlobalExecutor() async throws {
    precondition(MultiThreadedEventLoopGroup.currentEventLoop != nil, "this is not NIO's thread")
    let reader = ConfigReader(provider: InMemoryProvider(values: ["requests": 100]))
    let count = reader.int(forKey: "requests", default: 0)
    let server = try await HelloServer(on: MultiThreadedEventLoopGroup.singleton)
    let url = "http://127.0.0.1:\(server.port)/"

    let counts = TestMetrics()
    let hooks = SessionHooks().logging(to: Logger(label: "consumer")).metrics(to: counts)
    let session = try await SessionManager.start(hooks: hooks)
    let group = ServiceGroup(services: [SessionService(session)], logger: Logger(label: "consumer"))
    async let running: Void = group.run()

    let statuses = try await withThrowingTaskGroup(of: Int.self) { tasks in
        for _ in 0..<count { tasks.addTask { try await session.data(for: HTTPRequest(url)).response.status } }
        return try await tasks.reduce(into: []) { $0.append($1) }
    }
    print("\(statuses.count { $0 == 200 }) answers")
    let other = try await HTTPClient.shared.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
    print("the other client: \(other.status.code)")

    print("libxml2 before: \(try isLoaded("libxml2.so"))")
    let document = try await session.value(for: HTTPRequest(url), by: XMLResponseSerializer()).value
    print("libxml2 after: \(try isLoaded("libxml2.so")), \(document != nil)")

    await group.triggerGracefulShutdown()
    try await running
    print("\(counts.counterTotal(label: "http.client.requests")) counted")
    try await server.close()
}

try await Task.detached { try await onGlobalExecutor() }.value
