import Foundation
import Testing

/// `proxy.users`: 407 until the credentials are right, on a connection that stays open. The origin never sees them.
@Suite(.sharedBed(AuthenticationBed.prepare), .timeLimit(.minutes(5)))
struct AuthenticationTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private static func credentials(_ pair: String) -> String {
        "Proxy-Authorization: Basic \(Data(pair.utf8).base64EncodedString())\r\n"
    }

    @Test func theConnectionSurvivesA407() async throws {
        let connection = try RawConnection(to: shared.proxy)
        func connect(_ fields: String) async throws -> RawResponse {
            try await connection.send(
                "CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\(fields)\r\n")
            return try await connection.response()
        }
        let none = try await connect("")
        #expect(none.status == 407)
        #expect(none["Proxy-Authenticate"]?.hasPrefix("Basic realm=") == true, "\(none)")
        #expect(none["WWW-Authenticate"] == nil)
        for wrong in ["ada:wrong", "nobody:secret", "ada:", "ada"] {
            #expect(try await connect(Self.credentials(wrong)).status == 407, "\(wrong)")
        }
        #expect(try await connect("Proxy-Authorization: Bearer secret\r\n").status == 407)
        #expect(try await connect("Proxy-Authorization: Basic !!!\r\n").status == 407)
        #expect(try await connect(Self.credentials("ada:secret")).status == 200)
    }

    @Test func curlAuthenticates() async throws {
        let right = try await shared.curl("--proxy-user", "ada:secret", shared.url + "/large/3")
        #expect(right.succeeded, "\(right)")
        let wrong = try await shared.curl("--proxy-user", "ada:wrong", shared.url + "/large/3")
        #expect(wrong.ending == .exited(56), "\(wrong)")
    }

    @Test func credentialsAreNotForwarded() async throws {
        let run = try await shared.curl("--proxy-user", "ada:secret", shared.plainURL + "/echo")
        #expect(run.output.contains("\"method\": \"GET\""), "\(run)")
        #expect(!run.output.contains("Proxy-Authorization"), "\(run)")
    }

    @Test func aPlainRequestNeedsThemEachTime() async throws {
        let connection = try RawConnection(to: shared.proxy)
        let head = "GET \(shared.plainURL)/large/3 HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n"
        for (fields, status) in [("", 407), (Self.credentials("ada:secret"), 200), ("", 407)] {
            try await connection.send(head + fields + "\r\n")
            #expect(try await connection.response().status == status)
        }
    }
}

/// More passwords than the proxy can compare at a time.
@Suite(.timeLimit(.minutes(5)))
struct CrowdedAuthenticationTests {
    /// A client over the limit gets 503 and not 407, since its password may be right.
    @Test func whoCannotBeComparedIsToldToComeAgain() async throws {
        try await withTestBed { bed in
            // Each comparison takes seconds. The test stops the proxy before the second one finishes.
            try bed.file("proxy/users", "ada:$2b$16$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n")
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["users: users"]])
            var waiting: [RawConnection] = []
            // Workers accept connections in any order, so the refused one may be any of them.
            for number in 0..<18 {
                let credentials =
                    "Proxy-Authorization: Basic \(Data("ada:secret\(number)".utf8).base64EncodedString())\r\n"
                let connection = try RawConnection(to: proxy)
                try await connection.send(
                    "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\(credentials)\r\n")
                waiting.append(connection)
            }
            let refused = try await proxy.events.first("exchange")
            #expect(refused["status"] == "503", "\(refused)")
            #expect(refused["cause"]?.contains("16 passwords of user \(geteuid())") == true, "\(refused)")
            let answer = try await Self.first(of: waiting)
            #expect(answer.status == 503, "\(answer)")
            #expect(Int(answer["Retry-After"] ?? "") ?? 0 > 0, "\(answer)")
            #expect(answer["Proxy-Authenticate"] == nil)
            #expect(!answer.description.contains("wrong"), "\(answer)")
            let said = try await proxy.events.first("users.limit")
            #expect(said["cause"] == "16 passwords of user \(geteuid()) are waiting to be checked", "\(said)")
        }
    }

    /// The first answer on any of the connections.
    private static func first(of connections: [RawConnection]) async throws -> RawResponse {
        let first = Once<RawResponse>()
        for connection in connections {
            Task { if let response = try? await connection.response() { first.settle(response) } }
        }
        return try await first.value(within: .seconds(30), awaiting: "an answer")
    }
}

enum AuthenticationBed {
    /// A htpasswd file `users` with ada. Returns the password's hash.
    @discardableResult
    static func usersFile(in bed: TestBed, folder: String, password: String = "secret") async throws -> String {
        let hash = try await bcrypt(password, in: bed)
        try bed.file("\(folder)/users", "ada:\(hash)\n")
        return hash
    }

    /// The cheapest hash, made by the C library: Python has had none since 3.13.
    static func bcrypt(_ password: String, in bed: TestBed) async throws -> String {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
        let salt = "$2b$04$" + String((0..<21).compactMap { _ in letters.randomElement() }) + "u"
        let hash = try await bed.run(["perl", "-e", "print crypt($ARGV[0], $ARGV[1])", password, salt])
        guard hash.output.hasPrefix(salt) else { throw TestBedError("no bcrypt: \(hash)") }
        return hash.output
    }

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await usersFile(in: bed, folder: "proxy")
        return try await OriginBed.prepare(bed, sections: ["proxy": ["users: users"]])
    }
}
