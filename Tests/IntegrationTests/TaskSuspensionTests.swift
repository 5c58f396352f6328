import Foundation
import PinproxyTestAuthority
import Testing

/// A suspended task: nothing moves, nothing is lost, and the peers only notice the wait.
@Suite(.timeLimit(.minutes(5)))
struct TaskSuspensionTests {
    /// More than all buffers on the way hold.
    private static let length = 32 << 20

    /// `/large/N` as far as it has been received: after a head the bytes 0 to 255, again and again.
    private struct Received {
        private static let pattern = (0..<(65_536 + 256)).map { UInt8(truncatingIfNeeded: $0) }
        private(set) var count = 0
        private(set) var body = 0
        private(set) var isRight = true
        private var head: [UInt8]? = []

        mutating func take(_ bytes: [UInt8]) {
            count += bytes.count
            guard let head else { return takeBody(bytes) }
            let received = head + bytes
            self.head = received
            guard let end = received.firstRange(of: Array("\r\n\r\n".utf8)) else { return }
            self.head = nil
            takeBody(Array(received[end.upperBound...]))
        }

        private mutating func takeBody(_ bytes: [UInt8]) {
            let start = body % 256
            let isSame = Self.pattern.withUnsafeBytes { pattern in
                bytes.withUnsafeBytes {
                    $0.isEmpty || memcmp($0.baseAddress!, pattern.baseAddress! + start, $0.count) == 0
                }
            }
            if !isSame { isRight = false }
            body += bytes.count
        }
    }

    /// Suspends a download repeatedly. Each time the client has received exactly what the task says, and in the end
    /// every byte is right.
    @Test(arguments: [false, true]) func aDownloadStandsStillAndLosesNothing(throughTunnel: Bool) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, pins: "defaults: {action: tunnel}\n")
            let connection = try RawConnection(to: shared.proxy)
            let authority = "\(OriginBed.name):\(shared.secondOriginPort)"
            if throughTunnel {
                try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
                #expect(try await connection.response().status == 200)
                try await connection.send("GET /large/\(Self.length) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            } else {
                try await connection.send(
                    "GET http://\(authority)/large/\(Self.length) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            }
            let task = try await shared.tasks.only { $0.bytesDown > 0 }
            #expect(task.kind == (throughTunnel ? "tunnel" : "exchange"))
            #expect(task.state == "running")
            var received = Received()
            for round in 1...3 {
                while received.count < round * (Self.length / 5) {
                    received.take(try await connection.receive())
                }
                let suspended = try await shared.tasks.order("suspend", task.id)
                #expect(suspended.state == "suspended")
                while received.count < suspended.bytesDown {
                    received.take(try await connection.receive())
                }
                // The client could receive more, and the proxy's loop has had time to send it.
                for _ in 0..<3 {
                    let later = try await shared.tasks.show(task.id)
                    #expect(later.bytesDown == suspended.bytesDown && later.state == "suspended")
                }
                #expect(received.count == suspended.bytesDown)
                // Suspending it again is harmless.
                #expect(try await shared.tasks.order("suspend", task.id).state == "suspended")
                #expect(try await shared.tasks.order("resume", task.id).state == "running")
            }
            while received.body < Self.length {
                let bytes = try await connection.receive()
                if bytes.isEmpty { break }
                received.take(bytes)
            }
            #expect(received.body == Self.length && received.isRight)
            try await connection.finishSending()
            let line = try await shared.proxy.events.first("exchange") { $0["task"] == "\(task.id)" }
            #expect(line["cause"] == nil, "\(line)")
            #expect(shared.proxy.events.all("task.suspend").count == 3)
            #expect(shared.proxy.events.all("task.resume").count == 3)
            #expect(shared.proxy.events.all("task.suspend")[0]["cause"]?.contains("process \(getpid())") == true)
        }
    }

    /// The origin checks the digest of what it got.
    @Test func anUploadStandsStillAndLosesNothing() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                [
                    "/bin/sh", "-c", "head -c \(Self.length) /dev/urandom | tee sent | curl -sS -T - \"$0/slow-echo\"",
                    shared.url,
                ],
                environment: shared.proxy.clientEnvironment)
            let task = try await shared.tasks.only { $0.method == "PUT" && $0.bytesUp > 1 << 20 }
            let suspended = try await shared.tasks.order("suspend", task.id)
            for _ in 0..<3 { #expect(try await shared.tasks.show(task.id).bytesUp == suspended.bytesUp) }
            #expect(suspended.bytesUp < Self.length)
            try await shared.tasks.order("resume", task.id)
            let (ending, errors, output) = (
                try await client.ending(), await client.errors.text, await client.output.text
            )
            #expect(ending == .exited(0), "\(errors)")
            let digest = try await bed.run(["sha256sum", "sent"]).output.prefix(64)
            #expect(output.contains("\"sha256\": \"\(digest)\""), "\(output)")
        }
    }

    /// Time-outs stop too: the origin may answer long after first_byte.
    @Test func aTaskThatWaitsForItsResponseWaitsWithoutTimeout() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["timeouts": ["first_byte: 1s", "idle_client: 1s"]])
            func ask() throws -> Task<RawResponse, any Error> {
                let connection = try RawConnection(to: shared.proxy)
                return Task {
                    let host = "\(OriginBed.name):\(shared.secondOriginPort)"
                    try await connection.send("GET \(shared.plainURL)/silent HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                    return try await connection.response()
                }
            }
            let suspended = try ask()
            let task = try await shared.tasks.only { $0.phase == "waiting for the response" }
            try await shared.tasks.order("suspend", task.id)
            // One that isn't suspended is timed by the same limit, and began later.
            #expect(try await ask().value.status == 504)
            #expect(try await shared.tasks.show(task.id).state == "suspended")
            try await shared.tasks.order("resume", task.id)
            #expect(try await suspended.value.status == 504)
        }
    }

    /// Each step of an interception, up to a connection that changes its protocol.
    @Test func everyStepOfAnInterceptedConnectionWaits() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["timeouts": ["tls_handshake: 1s"]])
            let client = try await HeldClient(in: shared)
            #expect(try await client.connect() == "200")
            let task = try await shared.tasks.only { $0.kind == "interception" }
            #expect(task.method == "CONNECT" && task.transactions.count == 1)
            try await shared.tasks.order("suspend", task.id)
            let secured = Task { try await client.secure() }
            // While this one times out, the suspended one doesn't.
            let other = try await HeldClient(in: shared)
            #expect(try await other.connect() == "200")
            _ = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains("took longer") == true }
            #expect(try await shared.tasks.show(task.id).state == "suspended")
            try await shared.tasks.order("resume", task.id)
            #expect(try await secured.value == "new")

            #expect(try await client.upgrade() == "101")
            let upgraded = try await shared.tasks.only { $0.kind == "upgrade" }
            #expect(try await client.echo("first") == "first")
            try await shared.tasks.order("suspend", upgraded.id)
            let before = try await shared.tasks.show(upgraded.id)
            let echo = Task { try await client.echo("second") }
            for _ in 0..<3 {
                #expect(try await shared.tasks.show(upgraded.id).bytesUp == before.bytesUp)
            }
            try await shared.tasks.order("resume", upgraded.id)
            #expect(try await echo.value == "second")
            #expect(try await shared.tasks.show(upgraded.id).bytesUp == before.bytesUp + 6)
        }
    }

    /// A suspended CONNECT is answered only after it is resumed.
    @Test func aConnectThatWaitsForItsOriginWaitsOn() async throws {
        try await withTestBed { bed in
            let listener = try ListeningSocket()
            let shared = try await OriginBed.prepare(bed)
            let connection = try RawConnection(to: shared.proxy)
            let authority = "\(OriginBed.name):\(listener.port)"
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            let task = try await shared.tasks.only { $0.phase == "connecting" }
            #expect(task.host == OriginBed.name && task.port == Int(listener.port))
            try await shared.tasks.order("suspend", task.id)
            // The origin gives up: the answer waits for the client's turn.
            let accepted = accept(listener.descriptor, nil, nil)
            #expect(accepted >= 0)
            close(accepted)
            for _ in 0..<3 { #expect(try await shared.tasks.show(task.id).state == "suspended") }
            #expect(!shared.proxy.events.all("exchange").contains { $0["task"] == "\(task.id)" })
            try await shared.tasks.order("resume", task.id)
            #expect(try await connection.response().status == 502)
        }
    }

    /// During the verified handshake, and after it.
    @Test(arguments: [false, true]) func aVerifiedTunnelWaits(tls12: Bool) async throws {
        try await withTestBed { bed in
            let pins = "hosts:\n  - match: \(OriginBed.name)\n    action: verify-tunnel\n"
            let roots = try TestRoots()
            let shared = try await OriginBed.prepare(
                bed, pins: pins, sections: ["timeouts": ["tls_handshake: 1s"]], roots: roots)
            let client = try await HeldClient(in: shared, trust: bed.path("roots.pem"))
            #expect(try await client.connect() == "200")
            let task = try await shared.tasks.only { $0.phase == "verifying the tunnel" }
            try await shared.tasks.order("suspend", task.id)
            let secured = Task { try await client.secure() }
            let other = try await HeldClient(in: shared, trust: bed.path("roots.pem"))
            #expect(try await other.connect() == "200")
            _ = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains("took too long") == true }
            #expect(try await shared.tasks.show(task.id).bytesUp == 0)
            try await shared.tasks.order("resume", task.id)
            #expect(try await secured.value == "new")
            let relaying = try await shared.tasks.only { $0.phase == "relaying" }
            #expect(relaying.id == task.id && relaying.kind == "tunnel")
            try await shared.tasks.order("suspend", task.id)
            let before = try await shared.tasks.show(task.id)
            let answer = Task { try await client.get() }
            for _ in 0..<3 { #expect(try await shared.tasks.show(task.id).bytesUp == before.bytesUp) }
            try await shared.tasks.order("resume", task.id)
            #expect(try await answer.value == "200")
        }
    }
}
