import Foundation
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyReachability
import PinproxyRecords
import PinproxySession
import PinproxyTransport
import Testing

@testable import PinproxyClients
@testable import PinproxyTLS

/// A response parsed as a client would parse it.
private struct Answer {
    let status: Int
    let reason: String
    let fields: [String: String]
    let framing: BodyFraming
    let keepsAlive: Bool
    let body: [UInt8]

    init?(_ bytes: [UInt8], to method: PinproxyHTTPWire.Method) {
        var parser = HeadParser(limit: 16384)
        var head = ResponseHead()
        guard case .complete = parser.parseResponse(bytes.span, to: method, into: &head) else { return nil }
        status = head.status
        reason = head.reason.text(in: bytes.span)
        var fields: [String: String] = [:]
        for field in head.fields { fields[field.name.text(in: bytes.span)] = field.value.text(in: bytes.span) }
        self.fields = fields
        framing = parser.framing.body
        keepsAlive = parser.framing.keepsAlive
        body = Array(bytes[Int(head.length)...])
    }
}

@Suite struct ProxyErrorTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let error: @Sendable () -> ProxyError
        let status: Int
        let type: String
        var testDescription: String { "\(status) \(type)" }
        init(_ error: @autoclosure @escaping @Sendable () -> ProxyError, _ status: Int, _ type: String) {
            self.error = error
            self.status = status
            self.type = type
        }
    }

    private static let connected = try! Authority.parse("a.test:443", defaultPort: nil).get()

    static let cases = [
        Case(.badRequest(WireError(.bareLineFeed, at: 3)), 400, "http_request_error"),
        Case(.badAuthority(.notASCII), 400, "http_request_error"),
        Case(.requestHeadTooLarge(65536), 431, "http_request_error"),
        Case(.badMaxForwards, 400, "http_request_error"),
        Case(.pathAboveBase(host: "a.test"), 400, "http_request_error"),
        Case(.tooManyRequestFields, 431, "http_request_error"),
        Case(.tooManyResponseFields(host: "a.test"), 502, "http_response_header_section_size"),
        Case(.requestStalled(after: .seconds(75)), 408, "http_request_error"),
        Case(.unsupportedScheme(ShownText("ftp://a.test/")), 400, "http_request_error"),
        Case(.cannotTunnelURL("a.test:443"), 403, "http_request_denied"),
        Case(.misdirected(Misdirection(serverName: "b.test"), connected: connected), 421, "http_request_error"),
        Case(.clientNotAllowed("192.0.2.1"), 403, "http_request_denied"),
        Case(.clientOfAnotherUser, 407, "http_request_denied"),
        Case(.credentialsMissing, 407, "http_request_denied"),
        Case(.credentialsWrong, 407, "http_request_denied"),
        Case(.credentialsNotCompared("16 passwords of user 1000"), 503, "proxy_internal_response"),
        Case(.denied(host: "a.test", entry: nil), 403, "http_request_denied"),
        Case(.plainToPinnedHost("a.test", entry: "pins.yaml:3"), 403, "http_request_denied"),
        Case(.upstreamClosed("closed", host: "a.test"), 502, "connection_terminated"),
        Case(.badResponse(WireError(.statusLine, at: 0), host: "a.test"), 502, "http_protocol_error"),
        Case(.responseHeadTooLarge(9, host: "a.test"), 502, "http_response_header_section_size"),
        Case(.unaskedUpgrade(host: "a.test"), 502, "http_protocol_error"),
        Case(.noResponse(after: .seconds(60), host: "a.test"), 504, "http_response_timeout"),
        Case(.cancelled(by: "cancelled by root", host: "a.test"), 403, "http_request_denied"),
    ]

    private let requester = Requester(task: 1, client: nil, traits: nil)

    @Test(arguments: cases, [PinproxyHTTPWire.Method.get, .head, .connect])
    func everyErrorIsAWholeResponse(_ example: Case, to method: PinproxyHTTPWire.Method) throws {
        for form in [RefusalForm.problem, .page] {
            for keeps in [false, true] {
                let error = example.error()
                let bytes = error.response(to: method, as: form, keepsConnection: keeps, for: requester)
                let answer = try #require(Answer(bytes, to: method))
                let whole = try #require(
                    Answer(error.response(to: .get, as: form, keepsConnection: keeps, for: requester), to: .get))
                #expect(answer.status == example.status)
                #expect(error.report.status == example.status)
                #expect(answer.fields["Proxy-Status"]?.hasPrefix("pinproxy; error=\(example.type); details=\"") == true)
                #expect(answer.keepsAlive == keeps)
                #expect(answer.fields["Content-Length"] == "\(whole.body.count)")
                #expect(answer.body == (method == .head ? [] : whole.body))
                #expect((answer.fields["Proxy-Authenticate"] != nil) == (example.status == 407))
                #expect((answer.fields["Retry-After"] != nil) == (example.status == 503))
                #expect(
                    answer.fields["Content-Type"]
                        == (form == .page ? "text/html; charset=utf-8" : "application/problem+json"))
                if form == .problem { try expectProblem(whole.body, example) }
            }
        }
    }

    private func expectProblem(_ body: [UInt8], _ example: Case) throws {
        let object = try JSONSerialization.jsonObject(with: Data(body))
        let problem = try #require(object as? [String: Any])
        #expect(problem["status"] as? Int == example.status)
        #expect(problem["error"] as? String == example.type)
        #expect((problem["title"] as? String)?.isEmpty == false)
        #expect((problem["detail"] as? String)?.isEmpty == false)
    }

    @Test func upstreamFailuresNameTheHost() throws {
        let address = try #require(IPAddress("169.254.169.254"))
        let cases: [(UpstreamFailure, Int, String)] = [
            (.unresolved(.notFound("a.test")), 502, "dns_error"),
            (.unresolved(.timedOut("a.test")), 504, "dns_timeout"),
            (.noNetwork(.noLink), 503, "destination_unavailable"),
            (.cellularForbidden(link: "wwan0"), 503, "http_request_denied"),
            (.blocked(address, .blocked(.kind(.metadata))), 403, "destination_ip_prohibited"),
            (.blocked(address, .loopbackFromElsewhere), 403, "destination_ip_prohibited"),
            (.itself(SocketAddress(ip: address, port: 7467), asParent: false), 508, "proxy_loop_detected"),
            (.itself(SocketAddress(ip: address, port: 7467), asParent: true), 508, "proxy_loop_detected"),
            (.noDescriptors, 503, "proxy_internal_error"),
            (.unresolved(.noDescriptors("a.test")), 503, "proxy_internal_error"),
            (.timedOut(.nameLookup), 504, "dns_timeout"),
            (.timedOut(.connect), 504, "connection_timeout"),
            (.parentRefused(status: 403), 502, "http_request_denied"),
            (.parentFailed("closed"), 502, "connection_terminated"),
            (.local("no descriptors"), 502, "proxy_internal_error"),
        ]
        let authority = try Authority.parse("a.test:443", defaultPort: nil).get()
        for (failure, status, type) in cases {
            let report = failure.report(for: authority)
            let bytes = RefusalResponse.bytes(for: report, toHead: false, as: .problem)
            let answer = try #require(Answer(bytes, to: .connect))
            #expect(answer.status == status)
            #expect(answer.fields["Proxy-Status"]?.hasPrefix("pinproxy; error=\(type); ") == true)
            try expectProblem(answer.body, Case(.credentialsMissing, status, type))
            #expect(String(decoding: answer.body, as: UTF8.self).contains("\"host\" : \"a.test\""))
        }
    }

    @Test(arguments: [RefusalForm.problem, .page])
    func theProxyItselfExplainsItsUse(_ form: RefusalForm) throws {
        let bytes = ProxyError.askedForProxyItself(url: "https://192.0.2.1:9").response(
            to: .get, as: form, keepsConnection: false, for: requester)
        let answer = try #require(Answer(bytes, to: .get))
        #expect(answer.status == 400)
        #expect(answer.fields["Content-Length"] == "\(answer.body.count)")
        #expect(String(decoding: answer.body, as: UTF8.self).contains("pinproxy exec --"))
        #expect(String(decoding: answer.body, as: UTF8.self).contains("pinproxy ca install --nss"))
        #expect(String(decoding: answer.body, as: UTF8.self).contains("export HTTPS_PROXY=https://192.0.2.1:9"))
    }
}

@Suite struct RefusalResponseTests {
    private let hostile: RefusalReport = {
        let text = "a\r\nSet-Cookie: x=\"\\1\" <script>é\u{0}" + String(repeating: "z", count: 2000)
        return RefusalReport(
            status: 502, reasonPhrase: text, proxyStatusError: "dns_error", details: text, title: text,
            body: [text], host: "<b>")
    }()

    @Test(arguments: RefusalForm.allCases)
    func whatOthersWroteCannotBreakOut(_ form: RefusalForm) throws {
        let bytes = RefusalResponse.bytes(for: hostile, toHead: false, as: form)
        let answer = try #require(Answer(bytes, to: .get))
        #expect(answer.fields["Set-Cookie"] == nil)
        #expect(answer.reason.utf8.count <= 200)
        #expect(answer.reason.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        let status = try #require(answer.fields["Proxy-Status"])
        #expect(status.hasPrefix("pinproxy; error=dns_error; details=\"a  Set-Cookie: x=\\\"\\\\1\\\" <script>??zz"))
        #expect(status.utf8.count < 700)
        if form == .page { #expect(!String(decoding: answer.body, as: UTF8.self).contains("<script>")) }
    }

    /// As a gRPC status, by the mapping that its clients apply themselves.
    @Test(arguments: [
        (400, "13"), (401, "16"), (403, "7"), (404, "12"), (421, "2"), (429, "14"), (431, "2"), (502, "14"),
        (503, "14"), (504, "14"),
    ])
    func aRefusalIsAStatusOfGRPC(_ status: Int, _ code: String) throws {
        var report = hostile
        report.status = status
        report.details = "100 % of a\r\nb"
        let answer = try #require(Answer(RefusalResponse.bytes(for: report, toHead: false, as: .grpc), to: .post))
        #expect(answer.status == 200 && answer.body.isEmpty)
        #expect(answer.fields["Content-Type"] == "application/grpc" && answer.fields["grpc-status"] == code)
        #expect(answer.fields["grpc-message"] == "100 %25 of a  b")
        #expect(answer.fields["Proxy-Status"]?.hasPrefix("pinproxy; error=dns_error") == true)
    }

    @Test(arguments: [
        ("application/grpc", RefusalForm.grpc), ("application/grpc+proto", .grpc),
        ("application/grpc;charset=x", .grpc),
        ("Application/GRPC", .grpc), ("application/grpc-web", .problem), ("application/grpcx", .problem),
        ("application/grp", .problem),
        ("application/json", .problem), ("", .problem),
    ])
    func theContentTypeTellsGRPC(_ type: String, _ form: RefusalForm) throws {
        let bytes = Array("POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Type: \(type)\r\n\r\n".utf8)
        var head = RequestHead()
        _ = head.parseHTTP2(bytes.span, HTTP2Framing(lines: 2, ends: true, isExtendedConnect: false))
        #expect(RefusalForm(for: RequestView(head, bytes.span)) == form)
        #expect(RefusalForm(for: try OwnedRequest(bytes).view) == .problem)
    }

    /// An answer inside a connection can be read by pages too.
    @Test(arguments: [RefusalForm.problem, .page, .grpc], [PinproxyHTTPWire.Method.connect, .get, .post])
    func onlyTheAnswerToConnectSaysWhoAskedAndWhere(_ form: RefusalForm, _ method: PinproxyHTTPWire.Method) throws {
        let address = SocketAddress(ip: try #require(IPAddress("192.0.2.77")), port: 3128)
        let contact = OriginContact(
            address: address, parent: "parent.test:3128",
            answer: AddressAnswer([address.ip], from: NameSource(.hostsFile)),
            tls: NegotiatedTLS(version: .tls13, cipher: "TLS_AES_128_GCM_SHA256", group: "x25519"))
        let traits = ClientTraits(
            user: 4711, userName: "grace", process: 815, executable: "/opt/asker", unit: "ask.service")
        let client = SocketAddress(ip: try #require(IPAddress("192.0.2.88")), port: 5)
        let error = ProxyError.upstream(
            .tls(.tls(TLSError(.certificateRejected, "x")), contact),
            try Authority.parse("a.test:443", defaultPort: nil).get(), nil)
        let bytes = error.response(
            to: method, as: form, keepsConnection: false,
            for: Requester(task: 4242, client: .network(client), traits: traits))
        let text = String(decoding: bytes, as: UTF8.self)
        let known = [
            "192.0.2.77", "parent.test", "hosts file", "grace", "815", "/opt/asker", "ask.service",
            "192.0.2.88",
        ]
        let isTold = method == .connect && form != .grpc
        for part in known { #expect(text.contains(part) == isTold, "\(part): \(text)") }
        if form != .grpc { #expect(text.contains("TLS_AES_128_GCM_SHA256") && text.contains("4242"), "\(text)") }
        // The record has all of it, for the status page.
        var record = TaskRecord()
        record.refused(error.refusal(for: Requester(task: 4242, client: .network(client), traits: traits)))
        #expect(record.story?.contains("192.0.2.77") == true && record.story?.contains("grace") == true)
    }

    @Test func pinsAreMembersOfTheProblem() throws {
        var report = hostile
        report.presentedPins = ["sha256/a="]
        report.configuredPins = ["sha256/b="]
        let answer = try #require(
            Answer(RefusalResponse.bytes(for: report, toHead: false, as: .problem), to: .get))
        let problem = try #require(try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
        #expect(problem["presented_pins"] as? [String] == ["sha256/a="])
        #expect(problem["configured_pins"] as? [String] == ["sha256/b="])
        #expect(problem["host"] as? String == "<b>")
        #expect(problem["detail"] as? String == hostile.body[0])
    }
}
