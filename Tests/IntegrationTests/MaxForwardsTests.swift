import Foundation
import Testing

/// Max-Forwards of TRACE and OPTIONS (RFC 9110 section 7.6.2).
@Suite(.sharedBed(OriginBed.prepare), .timeLimit(.minutes(5)))
struct MaxForwardsTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    /// The response to a request, sent in plain HTTP or inside an intercepted connection.
    private func ask(_ method: String, _ path: String, _ fields: String, secure: Bool) async throws -> String {
        if secure {
            return try await shared.bed.secureExchange(
                via: shared.proxy, to: shared.authority,
                "\(method) \(path) HTTP/1.1\r\nHost: \(shared.authority)\r\n\(fields)Connection: close\r\n\r\n"
            ).output
        }
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            "\(method) \(shared.plainURL)\(path) HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n"
                + "\(fields)Connection: close\r\n\r\n")
        return String(decoding: try await connection.receiveAll(), as: UTF8.self)
    }

    @Test(arguments: [true, false]) func theProxyAnswersAtZero(secure: Bool) async throws {
        let options = try await ask("OPTIONS", "/zero", "Max-Forwards: 0\r\n", secure: secure)
        #expect(options.hasPrefix("HTTP/1.1 200 "), "\(options)")
        #expect(options.contains("Allow: ") && options.contains("Content-Length: 0"), "\(options)")

        let trace = try await ask(
            "TRACE", "/zero", "Max-Forwards: 00\r\nX-Seen: yes\r\nCookie: secret\r\nAuthorization: secret\r\n",
            secure: secure)
        #expect(trace.hasPrefix("HTTP/1.1 200 "), "\(trace)")
        #expect(trace.contains("Content-Type: message/http"), "\(trace)")
        #expect(trace.contains("TRACE ") && trace.contains("X-Seen: yes"), "\(trace)")
        #expect(!trace.contains("secret"), "\(trace)")
        for origin in [shared.origin, shared.plainOrigin].compactMap({ $0 }) {
            #expect(!origin.events.all("request").contains { $0["target"] == "/zero" })
        }
    }

    @Test(arguments: [true, false]) func whatIsPassedOnIsOneLess(secure: Bool) async throws {
        for (method, sent, passed) in [
            ("OPTIONS", "1", "0"), ("TRACE", "010", "9"), ("GET", "0", "0"), ("GET", "x", "x"),
            ("OPTIONS", "99999999999999999999", "2147483647"),
        ] {
            let answer = try await ask(method, "/echo", "max-forwards:\(sent)\r\n", secure: secure)
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            #expect(
                answer.range(of: "\"[Mm]ax-[Ff]orwards: ?\(passed)\"", options: .regularExpression) != nil,
                "\(method) \(sent): \(answer)")
        }
    }

    @Test(arguments: ["x", "-1", "", "1, 2", "1\r\nMax-Forwards: 1"]) func whatIsNoNumberIsRefused(
        value: String
    ) async throws {
        let answer = try await ask("OPTIONS", "/echo", "Max-Forwards: \(value)\r\n", secure: false)
        #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(answer)")
        #expect(answer.contains("Max-Forwards"), "\(answer)")
    }
}
