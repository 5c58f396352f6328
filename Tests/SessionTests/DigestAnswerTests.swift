import Foundation
import PinproxyHTTPWire
import PinproxySerialization
import Testing

@testable import PinproxySession

@Suite struct DigestAnswerTests {
    static func challenge(_ text: String) throws -> DigestChallenge {
        let challenge = try #require(parse(text).first)
        return try #require(DigestChallenge(challenge))
    }

    static func parse(_ text: String) -> [Challenge] {
        let bytes = Array(text.utf8)
        var list: [Challenge] = []
        Challenge.append(of: bytes.span, to: &list)
        return list
    }

    static func credentials(_ user: String, _ password: String) throws -> Credentials {
        try Credentials(user: user, password: Secret(password))
    }

    /// The answer, read as a server reads it.
    static func answer(
        _ text: String, user: String, password: String, method: String = "GET", target: String, count: UInt32 = 1,
        clientNonce: String
    ) throws -> AuthParameters {
        let value = try #require(
            try challenge(text).authorization(
                try credentials(user, password), method: Array(method.utf8), target: Array(target.utf8), count: count,
                clientNonce: Array(clientNonce.utf8),
                session: DigestChallenge.Session(nonce: try challenge(text).nonce, clientNonce: Array(clientNonce.utf8))
            ))
        let answer = try #require(parse(String(decoding: value, as: UTF8.self)).first)
        #expect(answer.scheme == "digest")
        return answer.parameters
    }

    /// RFC 7616 section 3.9.1, and RFC 2617 section 3.5 with and without a quality.
    @Test(arguments: [
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("md5", "8ca523f5e9506fed4657c9700eebdbec"),
    ])
    func theStandardsExamplesComeOut(_ algorithm: String, _ response: String) throws {
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
        let opaque = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        let answer = try Self.answer(
            #"""
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\#(algorithm), nonce="\#(nonce)", \#
            opaque="\#(opaque)"
            """#,
            user: "Mufasa", password: "Circle of Life", target: "/dir/index.html",
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(answer["response"] == Array(response.utf8))
        #expect(answer["nc"] == Array("00000001".utf8))
        #expect(answer["opaque"] == Array(opaque.utf8))
        #expect(answer["algorithm"] == Array(algorithm.utf8))
        #expect(answer["uri"] == Array("/dir/index.html".utf8))
        #expect(answer["userhash"] == nil)
    }

    @Test func theOlderStandardsExamplesComeOut() throws {
        let nonce = "dcd98b7102dd2f0e8b11d0f600bfb0c093"
        let with = try Self.answer(
            #"Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="\#(nonce)""#, user: "Mufasa",
            password: "Circle Of Life",
            target: "/dir/index.html", clientNonce: "0a4f113b")
        #expect(with["response"] == Array("6629fae49393a05397450978507c4ef1".utf8))
        #expect(with["algorithm"] == nil)
        let without = try Self.answer(
            #"Digest realm="testrealm@host.com", nonce="\#(nonce)""#, user: "Mufasa", password: "Circle Of Life",
            target: "/dir/index.html", clientNonce: "0a4f113b")
        #expect(without["response"] == Array("670fd8c2df070c60b045671b8b24ff02".utf8))
        #expect(without["qop"] == nil && without["nc"] == nil && without["cnonce"] == nil)
    }

    /// The request of RFC 7616 section 3.9.2. The response is what Python's hashlib (sha512_256) makes of it.
    @Test func hashedNamesAndSHA512ComeOut() throws {
        let answer = try Self.answer(
            #"Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, "#
                + #"nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", "#
                + #"opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true"#,
            user: "Jäsøn Doe", password: "Secret, or not?", target: "/doe.json",
            clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm")
        #expect(answer["username"] == Array("793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b".utf8))
        #expect(answer["response"] == Array("7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c".utf8))
        #expect(answer["userhash"] == Array("true".utf8))
    }

    @Test func namesBeyondASCIIAreWrittenAsTheServerCanReadThem() throws {
        let extended = try Self.answer(
            "Digest realm=a, nonce=b, qop=auth, charset=UTF-8", user: "Jäsøn \"x\"", password: "p", target: "/",
            clientNonce: "c")
        #expect(extended["username*"] == Array("UTF-8''J%C3%A4s%C3%B8n%20%22x%22".utf8))
        #expect(extended["username"] == nil)
        let plain = try Self.answer(
            "Digest realm=a, nonce=b, qop=auth", user: "Jäsøn \"x\"", password: "p", target: "/", clientNonce: "c")
        #expect(plain["username"] == Array("Jäsøn \"x\"".utf8))
    }

    @Test(arguments: [
        "Basic realm=a", "Digest realm=a", "Digest realm=a, nonce=\"\"", "Digest abc==",
        "Digest realm=a, nonce=b, algorithm=SHA-1",
        "Digest realm=a, nonce=b, algorithm=\"\"", "Digest realm=a, nonce=b, algorithm=-sess",
        "Digest realm=a, nonce=b, qop=auth-int",
        "Digest realm=a, nonce=b, qop=\"\"", "Digest realm=a, nonce=b, qop=\"auth-int, token\"",
        "Digest realm=a, nonce=b, algorithm=MD5-sess",
        "Digest nonce=b, realm=\"\(String(repeating: "a", count: 4096))\"", "Negotiate",
    ])
    func whatCantBeAnsweredIsNoChallenge(_ text: String) {
        #expect(Self.parse(text).first.flatMap(DigestChallenge.init) == nil)
    }

    /// curl's answers to the same challenges are the same, field for field. Without SHA-512-256, for which versions
    /// before 8.10 compute SHA-256.
    @Test func curlAnswersTheSame() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "pinproxy-digest-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let challenges = [
            #"Digest realm="a", nonce="b", qop="auth""#,
            #"Digest realm="a", nonce="b", qop="auth", algorithm=MD5, opaque="o""#,
            #"Digest realm="a", nonce="b", qop="auth,auth-int", algorithm=SHA-256"#,
            #"Digest realm="a", nonce="b", qop=auth, algorithm=MD5-sess"#,
            #"Digest realm="a", nonce="b", qop="auth", algorithm=SHA-256-sess"#, #"Digest realm="a", nonce="b""#,
            #"Digest realm="a b, c", nonce="b/+==", algorithm=SHA-256, qop="auth""#,
            #"Digest realm="a", nonce="b", opaque="""#,
            #"Digest realm="a", nonce="b", qop="auth", algorithm=SHA-256, userhash=true"#,
            #"Digest realm="say \"a\"", nonce="b", qop="auth""#,
        ]
        try challenges.joined(separator: "\n").write(
            to: directory.appending(path: "challenges"), atomically: true, encoding: .utf8)
        // A server that sends each challenge, and records what comes back.
        let script = """
            import http.server, subprocess, sys, threading
            challenges = open(sys.argv[1] + "/challenges").read().split("\\n")
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *a): pass
                def do_GET(self):
                    sent = self.headers.get("Authorization")
                    self.send_response(200 if sent else 401)
                    if not sent: self.send_header("WWW-Authenticate", challenges[int(self.path.split("/")[1])])
                    body = (sent or "").encode()
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for index in range(len(challenges)):
                url = "http://127.0.0.1:%d/%d/x;y?q=a,b" % (server.server_port, index)
                command = ["curl", "-q", "-s", "--noproxy", "*", "--digest", "-u", 'ada "x":geheim', url]
                r = subprocess.run(command, capture_output=True, text=True)
                print(r.stdout)
            """
        let python = Process()
        python.executableURL = URL(filePath: "/usr/bin/env")
        python.arguments = ["python3", "-c", script, directory.path]
        let output = Pipe()
        python.standardOutput = output
        try python.run()
        let lines = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        python.waitUntilExit()
        try #require(lines.count == challenges.count)
        for (index, line) in lines.enumerated() {
            let curl = try #require(Self.parse(String(line)).first?.parameters, "\(challenges[index])")
            let ours = try Self.answer(
                challenges[index], user: "ada \"x\"", password: "geheim", target: "/\(index)/x;y?q=a,b",
                clientNonce: curl["cnonce"].map { String(decoding: $0, as: UTF8.self) } ?? "")
            for name in [
                "username", "realm", "nonce", "uri", "algorithm", "response", "qop", "nc", "cnonce", "opaque",
                "userhash",
            ] {
                #expect(ours[name] == curl[name], "\(name) for \(challenges[index])")
            }
            #expect(ours.count == curl.count)
        }
    }
}
