import Foundation
import PinproxyTestAuthority
import Testing

/// A run's token: who gets one, what it grants, and where it must not appear.
@Suite(.timeLimit(.minutes(5)))
struct ExecTokenTests {
    private static func credentials(_ pair: String) -> String {
        "Proxy-Authorization: Basic \(Data(pair.utf8).base64EncodedString())\r\n"
    }

    /// Under `setpriv`: a user other than the proxy's own.
    private static let stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]

    private static func openToStrangers(_ bed: TestBed) throws {
        chmod(bed.directory, 0o755)
        for name in ["proxy", "proxy/state", "proxy/state/pinproxy", "stranger"] {
            try FileManager.default.createDirectory(atPath: bed.path(name), withIntermediateDirectories: true)
            chmod(bed.path(name), 0o755)
        }
        chown(bed.path("stranger"), 65534, 65534)
        chmod(bed.path("proxy/pinproxy.yaml"), 0o644)
    }

    /// The token reaches neither an origin nor the log.
    @Test func theTokenStaysHere() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let script =
                """
                echo $http_proxy; curl -s \(shared.plainURL)/echo; curl -s \(shared.url)/echo; curl -s \
                https://nowhere.onion/
                """
            let run = try await bed.exec("sh", "-c", script)
            let url = try #require(
                run.output.firstMatch(of: /http:\/\/pinproxy-run:([0-9a-f]{64})@127\.0\.0\.1:([0-9]+)/))
            #expect(String(url.output.2) == "\(shared.proxy.port)")
            #expect(run.output.matches(of: /"method": "GET"/).count == 2, "\(run)")
            #expect(run.output.components(separatedBy: url.output.1).count == 2, "\(run)")
            #expect(!run.output.lowercased().contains("proxy-authorization"), "\(run)")
            let event = try await shared.proxy.events.first("exchange") { $0["host"] == "nowhere.onion" }
            #expect(!event.description.contains(url.output.1))
            let encoded = Data("pinproxy-run:\(url.output.1)".utf8).base64EncodedString()
            for line in shared.proxy.process.output.lines {
                #expect(
                    !line.contains(url.output.1) && !line.contains(encoded) && !line.contains("pinproxy-run"), "\(line)"
                )
            }
        }
    }

    /// Without `proxy.users` every client is admitted, even with the token of a past run.
    @Test func anOldTokenIsNoHindranceWhereNobodyIsAsked() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            for token in [String(repeating: "0", count: 64), "nonsense", ""] {
                let answer = try await shared.proxy.connect(
                    to: shared.authority, fields: Self.credentials("pinproxy-run:\(token)"))
                #expect(answer.status == 200, "\(answer)")
            }
        }
    }

    /// The proxy's own user needs no password. A run's token expires with the run, however it ends.
    @Test(arguments: [SIGTERM, SIGKILL])
    func aTokenEndsWithItsRun(signal: CInt) async throws {
        try await withTestBed { bed in
            try await AuthenticationBed.usersFile(in: bed, folder: "proxy")
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["users: users"]])
            let right = try await bed.exec(
                "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "\(shared.url)/large/3")
            #expect(right.output == "200" && right.errors.isEmpty, "\(right)")

            let process = try await bed.start(
                bed.execArguments([], ["sh", "-c", "echo $https_proxy; exec setpriv --pdeathsig KILL sleep 1000"]),
                environment: ProxyProcess.environment(in: bed))
            let url = try await process.output.first(awaiting: "the URL") { $0.contains("@") ? $0 : nil }
            let pair = String(url.dropFirst(7).prefix { $0 != "@" })
            func status() async throws -> Int {
                try await shared.proxy.connect(to: shared.authority, fields: Self.credentials(pair)).status
            }
            #expect(try await status() == 200)
            for wrong in [pair + "0", String(pair.dropLast()), "pinproxy-run:", "ada:" + pair.dropFirst(13)] {
                #expect(
                    try await shared.proxy.connect(to: shared.authority, fields: Self.credentials(wrong)).status == 407,
                    "\(wrong)")
            }
            process.send(signal: signal)
            _ = try await process.ending()
            try await eventually("the token's end") { try await status() == 407 }
            let answer = try await shared.proxy.connect(to: shared.authority, fields: Self.credentials(pair))
            #expect(answer.description.contains("is over"), "\(answer)")
        }
    }

    /// Another user's run hears of refusals but has no access. That takes a user's name and password, which the command
    /// never sees.
    @Test(.enabled(if: getuid() == 0, "needs root, to be another user")) func anotherUserNeedsAPassword() async throws {
        try await withTestBed { bed in
            try await AuthenticationBed.usersFile(in: bed, folder: "proxy")
            let port = try bed.port()
            let shared = try await OriginBed.prepare(
                bed, sections: ["proxy": ["users: users", "listen: 127.0.0.1:\(port)"]])
            try Self.openToStrangers(bed)
            let state = bed.path("proxy/state/pinproxy")
            func exec(_ proxyURL: String?, _ script: String) async throws -> Run {
                var environment = ["HOME": bed.path("stranger"), "XDG_STATE_HOME": bed.path("stranger")]
                environment["HTTPS_PROXY"] = proxyURL
                return try await bed.exec(
                    options: ["--state-directory", state], environment: environment, launcher: Self.stranger, "sh",
                    "-c", script)
            }
            let fetch = "curl -s -o /dev/null -w %{http_code} \(shared.url)/large/3"
            let none = try await exec(nil, fetch)
            #expect(!none.succeeded)
            #expect(
                none.told.first?.contains("requires a user name and a password (proxy.users): add them to HTTPS_PROXY")
                    == true, "\(none)")
            #expect(none.told.last?.contains("pinproxy exec had none") == true, "\(none)")

            let wrong = try await exec("http://ada:wrong@127.0.0.1:\(port)", fetch)
            #expect(
                !wrong.succeeded && wrong.told.first?.contains("rejects the user name and the password") == true,
                "\(wrong)")

            let right = try await exec("http://ada:secret@127.0.0.1:\(port)", "env; \(fetch)")
            #expect(right.succeeded && right.output.hasSuffix("200") && right.errors.isEmpty, "\(right)")
            #expect(!right.output.contains("secret"), "\(right)")

            // A password for another proxy is not used here.
            let other = try await exec("http://ada:secret@127.0.0.1:\(port == 1 ? 2 : 1)", fetch)
            #expect(!other.succeeded, "\(other)")

            // A nested run may do whatever the outer one may.
            let inner = bed.execArguments(
                ["--state-directory", state],
                ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "\(shared.url)/large/3"]
            ).joined(separator: " ")
            let nested = try await exec("http://ada:secret@127.0.0.1:\(port)", inner)
            #expect(nested.output == "200", "\(nested)")

            // Once the user is removed, the run's next request is refused.
            let waiting = try await bed.start(
                Self.stranger
                    + bed.execArguments(
                        ["--state-directory", state],
                        [
                            "sh", "-c",
                            "\(fetch); echo; until [ -e \(bed.path("stranger/gone")) ]; do sleep 0.05; done; \(fetch)",
                        ]),
                environment: [
                    "XDG_STATE_HOME": bed.path("stranger"), "HTTPS_PROXY": "http://ada:secret@127.0.0.1:\(port)",
                ])
            _ = try await waiting.output.first(awaiting: "the first answer") { $0 == "200" ? $0 : nil }
            let hash = try bed.contents("proxy/users").split(separator: ":")[1]
            try bed.file("proxy/users", "bob:\(hash)")
            #expect(try await shared.proxy.reload().name == "config.reload")
            try bed.file("stranger/gone", "", mode: 0o644)
            #expect(try await waiting.ending() == .exited(56))
        }
    }

    /// The proxy may be another one by the time that something is refused.
    @Test func aProxyThatIsRestartedIsToldOfTheRun() async throws {
        try await withTestBed { bed in
            let port = try bed.port()
            let pins = "hosts: [{match: denied.test, action: deny}]\n"
            let sections = ["proxy": ["listen: 127.0.0.1:\(port)"]]
            let first = try await ProxyProcess(in: bed, pins: pins, trust: nil, sections: sections)
            let script =
                """
                curl -s https://denied.test/; echo first; until [ -e again ]; do sleep 0.05; done; curl -s \
                https://denied.test/; true
                """
            let process = try await bed.start(
                bed.execArguments([], ["sh", "-c", script]), environment: ProxyProcess.environment(in: bed))
            _ = try await process.output.first(awaiting: "the first refusal") { $0 == "first" ? $0 : nil }
            first.process.send(signal: SIGTERM)
            _ = try await first.process.ending()
            let second = try await ProxyProcess(in: bed, pins: pins, trust: nil, sections: sections)
            _ = try await second.events.first("run.begin")
            try bed.file("again", "")
            #expect(try await process.ending() == .exited(0))
            let told = await process.errors.text
            #expect(
                told.hasPrefix("pinproxy: denied.test: denied.test:443 denied by policy: action: deny (2 times). "),
                "\(told)")
            #expect(!told.contains("\n"), "\(told)")
        }
    }

    /// Invalid requests to the run socket are answered, and occupy no place.
    @Test func theSocketOfRunsBearsAnything() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let path = bed.path("proxy/state/pinproxy/runs.sock")
            let before = try proxy.openDescriptors()
            let token = String(repeating: "ab", count: 32)
            func ask(_ text: String) async throws -> RawResponse {
                let connection = try RawConnection(path: path)
                try await connection.send(text)
                return try await connection.response()
            }
            for head in [
                "GET /runs", "POST /status", "POST /runs/", "POST /reload", "GET /tasks", "POST http://a/runs",
            ] {
                #expect(
                    try await ask("\(head) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\r\n").status
                        == 400, "\(head)")
            }
            for field in [
                "", "Authorization: \(token)\r\n", "Authorization: Bearer \(token)0\r\n",
                "Authorization: Bearer \(token.dropLast())x\r\n",
            ] {
                #expect(try await ask("POST /runs HTTP/1.1\r\nHost: a\r\n\(field)\r\n").status == 400, "\(field)")
            }
            let begin = "POST /runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\r\n"
            let first = try RawConnection(path: path)
            try await first.send(begin)
            #expect(try await first.response().status == 200)
            #expect(try await ask(begin).status == 409)
            // Anything more that it says without being asked is its end.
            try await first.send("x\n")
            let rest = String(decoding: try await first.receiveAll(), as: UTF8.self)
            #expect(rest.contains("\"summary\""), "\(rest)")
            try await eventually("the token to be free") { try await ask(begin).status == 200 }

            // Silent clients give way to active ones.
            var crowd: [RawConnection] = []
            for number in 0..<500 {
                let connection = try RawConnection(path: path)
                if number.isMultiple(of: 2) { try? await connection.send("POST /ru") }
                if number > 400 { crowd.append(connection) }
            }
            #expect(try await ask(begin).status == 200)
            crowd = []
            try await eventually("the connections to be gone") { try proxy.openDescriptors() == before }
        }
    }

    /// Beyond the limit of runs the command still runs, and a message says so.
    @Test func tooManyRunsAreSaid() async throws {
        try await withTestBed { bed in
            let port = try bed.port()
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["listen: 127.0.0.1:\(port)"]])
            var held: [RawConnection] = []
            for number in 0..<256 {
                let connection = try RawConnection(path: bed.path("proxy/state/pinproxy/runs.sock"))
                let digits = String(number, radix: 16)
                let token = String(repeating: "0", count: 64 - digits.count) + digits
                try await connection.send("POST /runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\r\n")
                #expect(try await connection.response().status == 200)
                held.append(connection)
            }
            let run = try await bed.exec("curl", "-s", "https://nowhere.onion/")
            #expect(run.ending == .exited(56), "\(run)")
            let limit = "256 runs of pinproxy exec are running, which is the limit"
            #expect(run.told.count == 1 && run.told[0].contains(limit), "\(run)")
            _ = try await proxy.events.first("runs.limit")
            held = []
            try await eventually("room") {
                try await bed.exec("curl", "-s", "https://nowhere.onion/").errors.contains("Cannot resolve")
            }
        }
    }
}
