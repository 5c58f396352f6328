import Foundation
import Testing

/// `session.max_active`: requests wait for their turns at a host.
@Suite(.timeLimit(.minutes(5)))
struct TurnTests {
    /// A request takes its turn at the host of the current hop.
    @Test func turnsAreTakenAtEachHop() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(
                bed, session: "{redirects: follow, follow_to: [other.test], max_active: 4}",
                others: ["other.test": "{max_active: 1}"])
            var clients: [ChildProcess] = []
            for number in 1...3 {
                let led = "http://other.test:\(shared.origin.port)/wait/v\(number)".addingPercentEncoding(
                    withAllowedCharacters: .alphanumerics)!
                clients += try await shared.begin(1, "/moved/\(led)")
            }
            try await shared.go("moved")
            try await eventually("two to wait") {
                try await shared.tasks.list().filter { $0.phase == "waiting for its turn" }.count == 2
            }
            func asked() -> Int { (1...3).reduce(0) { $0 + shared.requests("/wait/v\($1)") } }
            try await eventually("one request") { asked() == 1 }
            // The first host's turns are free again.
            let free = try await shared.begin(4, "/wait/w")
            try await eventually("four requests") { shared.requests("/wait/w") == 4 }
            for number in 1...3 { try await shared.go("v\(number)") }
            try await shared.go("w")
            _ = try await shared.outputs(of: clients + free)
            #expect(asked() == 3)
        }
    }

    /// A request that can't share a response waits for its own turn.
    @Test func turnsAreTakenByThoseWhoLeaveASharedResponse() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true, max_active: 1}")
            let clients = try await shared.begin(3, "/wait/x?Cache-Control=private")
            try await eventually("one request") { shared.requests("/wait/x") == 1 }
            let blocker = try await shared.begin(1, "/wait/y")
            #expect(shared.requests("/wait/y") == 0)
            try await shared.go("x")
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/y" }
            // Two of the three are repeated, and wait for that one.
            try await eventually("two to wait") {
                try await shared.tasks.list().filter { $0.path == "/wait/x" && $0.phase == "waiting for its turn" }
                    .count == 2
            }
            #expect(try await shared.allRequests("/wait/x") == 1)
            try await shared.go("y")
            _ = try await shared.outputs(of: clients + blocker)
            #expect(try await shared.allRequests("/wait/x") == 3)
        }
    }

    private static func order(_ shared: SharedFetchBed) -> [String] {
        shared.origin.events.all("request").compactMap { $0["target"] }.filter { $0 != "/wait/first" }
    }

    @Test(arguments: ["fifo", "lifo"]) func turnsAreTakenInTheirOrder(order: String) async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{max_active: 1, order: \(order)}")
            var clients = [
                try await bed.start(
                    ["curl", "-sS", shared.url + "/wait/first"], environment: shared.proxy.clientEnvironment)
            ]
            _ = try await shared.origin.events.first("request")
            for key in ["1", "2", "3"] {
                clients.append(
                    try await bed.start(
                        ["curl", "-sS", shared.url + "/wait/" + key], environment: shared.proxy.clientEnvironment))
                try await eventually("its wait") {
                    try await shared.tasks.list().filter { $0.phase == "waiting for its turn" }.count == Int(key)
                }
                try await shared.go(key)
            }
            #expect(shared.origin.events.all("request").count == 1)
            try await shared.go("first")
            _ = try await shared.outputs(of: clients)
            try await eventually("all requests") { Self.order(shared).count == 3 }
            #expect(
                Self.order(shared)
                    == (order == "fifo" ? ["/wait/1", "/wait/2", "/wait/3"] : ["/wait/3", "/wait/2", "/wait/1"]))
        }
    }

    /// A request that waited is judged by the new policy.
    @Test func aTurnIsNotTakenUnderAnOldPolicy() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{max_active: 1}")
            let clients = try await shared.begin(2, "/wait/k")
            try await eventually("one request") { shared.requests("/wait/k") == 1 }
            try bed.file("proxy/pins.yaml", "hosts:\n  - {match: origin.test, action: deny}\n")
            #expect(try await shared.proxy.reload().name == "config.reload")
            try await shared.go("k")
            let outputs = try await shared.outputs(of: clients).sorted()
            #expect(outputs[0].hasPrefix("HTTP/1.1 200 "), "\(outputs)")
            #expect(
                outputs[1].hasPrefix("HTTP/1.1 503 ") && outputs[1].contains("configuration has changed"), "\(outputs)")
            #expect(try await shared.allRequests("/wait/k") == 1)
        }
    }

    /// A waiting request that is cancelled uses no turn; a running one gives its turn back.
    @Test func aTurnIsNotLost() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{max_active: 2}")
            let clients = try await shared.begin(6, "/wait/h")
            try await eventually("two requests") { shared.requests("/wait/h") == 2 }
            let waiting = try await shared.tasks.list().filter { $0.phase == "waiting for its turn" }
            #expect(waiting.count == 4)
            for task in waiting.prefix(2) {
                #expect(try await shared.tasks.ask("POST", "/tasks/\(task.id)/cancel").status == 200)
            }
            let running = try await shared.tasks.list().filter { $0.phase != "waiting for its turn" }
            for task in running {
                #expect(try await shared.tasks.ask("POST", "/tasks/\(task.id)/cancel").status == 200)
            }
            try await eventually("two more") { shared.requests("/wait/h") == 4 }
            try await shared.go("h")
            for client in clients { _ = try await client.ending() }
            try await eventually("all lines") { shared.proxy.events.all("exchange").count == 6 }
            #expect(shared.proxy.events.all("exchange").filter { $0["status"] == "200" }.count == 2)
            #expect(try await shared.curl("/wait/h").output.hasPrefix("HTTP/1.1 200 "))
        }
    }
}
