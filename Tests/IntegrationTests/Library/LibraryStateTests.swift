import Foundation
import PinnedSession
import PinproxySecurity
import PinproxySerialization
import PinproxyTestAuthority
import Testing

/// What a session keeps between requests and presents to servers: cookies, stored responses, client certificates.
@Suite(.timeLimit(.minutes(5)))
struct LibraryStateTests {
    // MARK: Cookies

    /// A URL that sets a cookie.
    private func setting(_ cookie: String, at base: String, redirect: String? = nil) -> String {
        let status = redirect.map { "302 Moved\r\nLocation: \($0)" } ?? "200 OK"
        return base + "/answer/set/"
            + encoded("HTTP/1.1 \(status)\r\nSet-Cookie: \(cookie)\r\nContent-Length: 0\r\n\r\n")
    }

    private func cookie(_ session: SessionManager, _ url: String) async throws -> String? {
        try await Echo(session.data(for: HTTPRequest(url)).body).field("cookie")
    }

    @Test func cookiesComeBackAlsoAfterRedirects() async throws {
        try await withLibraryBed { bed in
            let store = CookieStore()
            let session = try bed.session { $0.cookies = store }
            _ = try await session.data(for: HTTPRequest(setting("a=1; Path=/; Secure", at: bed.url)))
            #expect(try await cookie(session, bed.url + "/echo") == "a=1")
            // A redirect's cookie goes with the next request.
            let login = setting("b=2; Path=/", at: bed.url, redirect: "/echo")
            #expect(try await cookie(session, login) == "a=1; b=2")
            #expect(try await cookie(session, setting("b=3; Path=/", at: bed.url, redirect: "/echo")) == "a=1; b=3")
            // A session without the store sends no cookie.
            #expect(try await cookie(bed.session(), bed.url + "/echo") == nil)
            #expect(store.cookies.map(\.name) == ["a", "b"])
        }
    }

    @Test func cookiesDoNotCrossOrigins() async throws {
        try await withLibraryBed { bed in
            let store = CookieStore()
            let session = try bed.session { $0.cookies = store }
            _ = try await session.data(for: HTTPRequest(setting("own=1; Path=/", at: bed.url)))
            _ = try await session.data(for: HTTPRequest(setting("others=2; Path=/", at: bed.otherURL)))
            #expect(try await cookie(session, bed.redirect(to: bed.otherURL + "/echo")) == "others=2")
            #expect(try await cookie(session, bed.redirect(to: bed.url + "/echo", at: bed.otherURL)) == "own=1")
            // Nor can one host set another's.
            for domain in ["localhost", "other.localhost"] {
                let url = setting("evil=1; Path=/; Domain=\(domain)", at: bed.url)
                _ = try await session.data(for: HTTPRequest(url))
            }
            #expect(store.cookies.map(\.name) == ["own", "others"])
        }
    }

    @Test func aRequestsOwnCookiesAreKept() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.cookies = CookieStore() }
            _ = try await session.data(for: HTTPRequest(setting("a=1; Path=/", at: bed.url)))
            var own = try HTTPRequest(bed.redirect(to: "/echo"))
            try own.set("Cookie", "mine=1", isSecret: true)
            #expect(try await Echo(session.data(for: own).body).field("cookie") == "mine=1")
            own.url = bed.redirect(to: bed.otherURL + "/echo")
            #expect(try await Echo(session.data(for: own).body).field("cookie") == nil)
            var without = try HTTPRequest(setting("b=2; Path=/", at: bed.url, redirect: "/echo"))
            without.handlesCookies = false
            #expect(try await Echo(session.data(for: without).body).field("cookie") == nil)
            #expect(try await cookie(session, bed.url + "/echo") == "a=1")
        }
    }

    // MARK: The cache

    private func cached(_ bed: TestBed) async throws -> (origin: PythonPeer, url: String, trust: String) {
        let roots = try TestRoots()
        let leaf = try roots.intermediate.issue(TestRoots.template(LibraryBed.names))
        let certificate = try bed.file("cached.pem", leaf.chainPEM)
        let key = try bed.file("cached.key", leaf.keyPEM)
        let origin = try await PythonPeer(in: bed, script: "cache_origin.py", [certificate, key])
        return (origin, "https://api.localhost:\(origin.port)", try roots.write(to: bed))
    }

    private func session(
        _ cache: CacheStorage, trust: String, _ rules: [HostRule] = [], cookies: CookieStore? = nil
    ) throws -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.trust = .files([trust])
        configuration.cache = cache
        configuration.hosts = rules
        configuration.cookies = cookies
        return try SessionManager(configuration: configuration)
    }

    @Test func storedResponsesAreServed() async throws {
        try await withTestBed { bed in
            let (_, url, trust) = try await cached(bed)
            let session = try session(.memory(bytes: 10_000_000), trust: trust)
            let request = try HTTPRequest(url + "/a?field=Cache-Control:max-age%3D600")
            func body() async throws -> (String, HTTPResponse) {
                let (body, response) = try await session.data(for: request)
                return (String(decoding: body, as: UTF8.self), response)
            }
            let (first, fresh) = try await body()
            #expect(first == "/a 1 " && !fresh.isFromCache && fresh.pinning == .unpinned)
            let (second, stored) = try await body()
            #expect(second == "/a 1 " && stored.isFromCache && stored.pinning == .stored)
            #expect(stored.metrics.transactions.isEmpty)
            var again = request
            try again.set("Cache-Control", "no-cache")
            #expect(try await session.data(for: again).body == Array("/a 2 ".utf8))
            // A validator saves the body.
            let tagged = try HTTPRequest(url + "/b?etag=%22x%22")
            _ = try await session.data(for: tagged)
            let (confirmed, response) = try await session.data(for: tagged)
            #expect(confirmed == Array("/b 1 ".utf8) && response.isFromCache && response.status == 200)
            #expect(response.pinning == .unpinned)
            let without = try self.session(.none, trust: trust)
            let plain = try HTTPRequest(url + "/c?field=Cache-Control:max-age%3D600")
            for number in 1...2 { #expect(try await without.data(for: plain).body == Array("/c \(number) ".utf8)) }
        }
    }

    @Test func whatWasStoredForOthersIsNotServed() async throws {
        try await withTestBed { bed in
            let (_, url, trust) = try await cached(bed)
            let store = CookieStore()
            let session = try session(.memory(bytes: 10_000_000), trust: trust, cookies: store)
            let request = try HTTPRequest(url + "/a?field=Cache-Control:max-age%3D600&field=Vary:Cookie")
            #expect(try await session.data(for: request).body == Array("/a 1 ".utf8))
            try store.set(Cookie(name: "user", value: Secret("x"), domain: "api.localhost"))
            #expect(try await session.data(for: request).body == Array("/a 2 ".utf8))
            #expect(try await session.data(for: request).body == Array("/a 2 ".utf8))
            store.removeAll()
            #expect(try await session.data(for: request).body != Array("/a 3 ".utf8))
        }
    }

    @Test func theDiskKeepsResponsesForTheNextSession() async throws {
        try await withTestBed { bed in
            let (_, url, trust) = try await cached(bed)
            let request = try HTTPRequest(url + "/a?field=Cache-Control:max-age%3D600")
            let storage = CacheStorage.disk(directory: bed.path("responses"), bytes: 10_000_000)
            do {
                let session = try session(storage, trust: trust)
                _ = try await session.data(for: request)
                try await eventually("the response to be stored") {
                    try await session.data(for: request).response.isFromCache
                }
                // The same store after a reset.
                try session.reset()
                #expect(try await session.data(for: request).response.isFromCache)
            }
            try await eventually("the next session to have it") {
                try await session(storage, trust: trust).data(for: request).response.isFromCache
            }
            // Another policy doesn't get what this one accepted.
            let wrong = try Pin(text: .wrongPin, for: .publicKey)
            let pinned = HostRule(
                try HostPattern("api.localhost"), policy: SecurityPolicy(mode: .publicKey, pins: PinSet([wrong])))
            let error = await failure {
                _ = try await session(storage, trust: trust, [pinned]).data(for: request)
            }
            #expect(error?.code == -1202)
        }
    }

    // MARK: Client certificates

    @Test func aClientCertificateIsPresented() async throws {
        try await withTestBed { bed in
            let (roots, clients) = (try TestRoots(), try TestRoots("Client"))
            let directives = """
                ssl_client_certificate \(try bed.file("clients.pem", clients.root.pem));
                ssl_verify_client on; ssl_verify_depth 3;
                location /who { return 200 "$ssl_client_verify $ssl_client_s_dn"; }
                """
            let nginx = try await NginxOrigin(
                in: bed,
                sites: [.init(name: "api.localhost", chain: try roots.chain("api.localhost"), directives: directives)])
            let client = try clients.intermediate.issue(
                TestRoots.template(["client.test"]) { $0.extendedKeyUsage = [CertificateTemplate.clientAuth] })
            let certificate = try bed.file("client.pem", client.chainPEM)
            let key = try bed.file("client.key", client.keyPEM)
            let trust = try roots.write(to: bed)
            let request = try HTTPRequest("https://api.localhost:\(nginx.port)/who")
            func who(_ presented: ClientCertificate?, _ pattern: String = "api.localhost") async throws -> String {
                let rule = HostRule(try HostPattern(pattern), clientCertificate: presented)
                return String(
                    decoding: try await session(.none, trust: trust, [rule]).data(for: request).body, as: UTF8.self)
            }
            #expect(try await who(.pem(certificate: certificate, privateKey: key)) == "SUCCESS CN=client.test")
            #expect(try await who(nil).contains("No required SSL certificate was sent"))
            #expect(
                try await who(.pem(certificate: certificate, privateKey: key), "other.localhost").contains(
                    "No required"))
            let file = try bed.file("client.p12", "")
            let made = try await bed.run([
                "openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-out", file, "-passout",
                "pass:s3cret",
            ])
            #expect(made.succeeded, "\(made)")
            #expect(try await who(.pkcs12(file, password: Secret("s3cret"))) == "SUCCESS CN=client.test")

            let open = try bed.file("open.key", client.keyPEM, mode: 0o644)
            let others = try bed.file("others.key", clients.root.keyPEM)
            for wrong: ClientCertificate in [
                .pem(certificate: certificate, privateKey: open), .pem(certificate: certificate, privateKey: others),
                .pem(certificate: bed.path("missing"), privateKey: key), .pem(certificate: key, privateKey: key),
                .pkcs12(file, password: Secret("wr0ng")), .pkcs12(certificate),
            ] {
                let error = await failure { _ = try await who(wrong) }
                guard case .configuration(let text)? = error else { return note("\(String(describing: error))") }
                #expect(text.hasPrefix("clientCertificate: \(bed.directory)") && !text.contains("wr0ng"), "\(text)")
            }
        }
    }
}
