import Foundation
import Testing

/// A proxy in front of a plain origin that answers at the test's command.
struct SharedFetchBed {
    let bed: TestBed
    let proxy: ProxyProcess
    let origin: PythonPeer
    let tasks: TaskControl
    let url: String

    /// - Parameter others: session rules for more names of the origin.
    init(
        _ bed: TestBed, session: String, workers: Int = 2, others: [String: String] = [:], upstream: [String] = [],
        sections: ProxyProcess.Sections = [:]
    ) async throws {
        self.bed = bed
        origin = try await PythonPeer(in: bed, script: "sharing_origin.py")
        let entries = others.merging(["origin.test": session]) { $1 }
        let pins = "hosts:\n" + entries.map { "  - {match: \($0), pinning: none, session: \($1)}\n" }.joined()
        proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: nil, hosts: entries.mapValues { _ in "127.0.0.1" },
            sections: sections.merging(["proxy": ["workers: \(workers)"], "upstream": upstream]) { $1 })
        tasks = TaskControl(bed: bed, proxy: proxy)
        url = "http://origin.test:\(origin.port)"
    }

    func curl(_ path: String, _ arguments: String...) async throws -> Run {
        try await bed.curl(via: proxy, ["-i"] + arguments + [url + path])
    }

    /// Starts clients at the same time, and waits until the proxy has their tasks.
    func begin(_ count: Int, _ path: String, _ arguments: [[String]] = []) async throws -> [ChildProcess] {
        try await adding(count) {
            var clients: [ChildProcess] = []
            for index in 0..<count {
                let more = arguments.isEmpty ? [] : arguments[index % arguments.count]
                clients.append(
                    try await bed.start(
                        ["curl", "-sS", "-i"] + more + [url + path], environment: proxy.clientEnvironment))
            }
            return clients
        }
    }

    /// Waits until the proxy has the new tasks, while tasks from before may end.
    func adding<Value>(_ count: Int, _ start: () async throws -> Value) async throws -> Value {
        let before = Set(try await tasks.list().map(\.id))
        let value = try await start()
        try await eventually("\(count) new tasks") {
            try await tasks.list().count { !before.contains($0.id) } == count
        }
        return value
    }

    /// A client that sends a request and closes with a reset.
    func reset(after path: String) async throws -> RawConnection {
        try await adding(1) {
            let client = try RawConnection(to: proxy)
            try await client.resetOnClose()
            try await client.send(
                "GET \(url)\(path) HTTP/1.1\r\nHost: origin.test:\(origin.port)\r\nAccept: */*\r\n\r\n")
            return client
        }
    }

    /// Makes the origin answer.
    func go(_ key: String) async throws {
        let connection = try RawConnection(port: origin.port)
        try await connection.send(
            "POST /go/\(key) HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        _ = try await connection.response()
    }

    /// All requests so far, including those that the origin hasn't reported yet.
    func allRequests(_ path: String) async throws -> Int {
        let mark = UUID().uuidString
        try await go(mark)
        _ = try await origin.events.first("go") { $0["key"] == mark }
        return requests(path)
    }

    func requests(_ path: String) -> Int { origin.events.all("request").filter { $0["target"] == path }.count }

    /// The outputs of clients; each must exit without an error.
    func outputs(of clients: [ChildProcess]) async throws -> [String] {
        var outputs: [String] = []
        for client in clients {
            #expect(try await client.ending() == .exited(0))
            outputs.append(await client.output.text)
        }
        return outputs
    }
}
