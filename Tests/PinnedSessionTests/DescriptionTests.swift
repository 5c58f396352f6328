import FoundationEssentials
import PinproxySerialization
import Testing

@testable import PinnedSession

/// What is printed of requests, responses and errors: never a secret.
@Suite struct DescriptionTests {
    @Test func secretsAreNotPrinted() throws {
        let url = "https://user:s3cret@api.test/a?token=s3cret"
        var request = try HTTPRequest(url, method: "POST", body: .text("password=s3cret"))
        try request.set("Authorization", "Bearer s3cret")
        try request.set("cookie", "id=s3cret")
        try request.set("X-Token", "s3cret", isSecret: true)
        let field = HTTPResponse.Field(name: "Set-Cookie", value: "id=s3cret")
        let response = HTTPResponse(status: 200, url: url, fields: [field], pinning: .unpinned)
        let form = MultipartForm(parameters: [.init(key: "a", value: "s3cret")])
        let cookie = Cookie(name: "id", value: Secret("s3cret"), domain: "api.test")
        let challenge = AuthenticationChallenge(url: url, offers: [.init(scheme: "basic", realm: nil)])
        let store = CookieStore()
        try store.set(cookie)
        let shown: [Any] = [
            request, request.fields, request.body, response, response.fields, field, RequestBody.form(form), cookie,
            [cookie], challenge, store, SessionError.unacceptableStatus(response),
            ClientCertificate.pkcs12("/client.p12", password: Secret("s3cret")),
        ]
        for value in shown {
            #expect(!"\(value)".contains("s3cret") && !String(reflecting: value).contains("s3cret"), "\(value)")
        }
        #expect("\(request.body)" == "15 bytes" && "\(field)" == "Set-Cookie: •••")
    }

    @Test func codesTellWhatFailed() {
        let mismatch = PinMismatch(host: "a.test", title: "no pin matches", presentedPins: [], configuredPins: [])
        #expect(SessionError.pinMismatch(mismatch).code == -1202 && SessionError.untrusted("").code == -1202)
        #expect(SessionError.cancelled.code == -999 && SessionError.invalidated.code == -999)
        #expect(SessionError.undecodable("").code == -1016)
        let error: any Error = SessionError.pinMismatch(mismatch)
        #expect((error as? any LocalizedError)?.errorDescription == "no pin matches")
    }

    private struct User: Decodable {
        let name: String
        let tags: [Int]
    }

    @Test(arguments: [
        (#"{"tags": []}"#, #"at the top: the key "name" is missing"#),
        (#"{"name": "x", "tags": ["s3cret"]}"#, "at tags[0]: the value is not of the type Int"),
        (#"{"name": null, "tags": []}"#, "at name: null instead of the type String"),
        (#"{"name": "#, "at the top: the value is not valid"),
    ])
    func wrongJSONIsNamedByItsPlace(_ text: String, _ expected: String) throws {
        let error = #expect(throws: (any Error).self) {
            try JSONDecoder().decode(User.self, from: Data(text.utf8))
        }
        #expect(try "\(CodingProblem(#require(error)))" == expected)
    }
}
