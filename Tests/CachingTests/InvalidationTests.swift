import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct InvalidationTests {
    private func urls(
        _ fields: String..., after method: PinproxyHTTPWire.Method = .post, status: Int = 200
    ) throws -> [String] {
        let response = try Trial.response(fields, status: status)
        return Invalidation.urls(after: method, of: try RequestURL("https://a.test/x/y?z"), response.view)
            .map(\.description)
    }

    @Test(arguments: [200, 201, 204, 301, 303, 399]) func unsafeMethodsInvalidate(_ status: Int) throws {
        for method in [PinproxyHTTPWire.Method.post, .put, .delete, .patch, .other] {
            #expect(try urls(after: method, status: status) == ["https://a.test/x/y?z"])
        }
    }

    @Test func errorsAndSafeMethodsDoNot() throws {
        for status in [400, 404, 500, 503] { #expect(try urls(status: status) == []) }
        for method in [PinproxyHTTPWire.Method.get, .head, .options, .trace, .connect] {
            #expect(try urls("Location: /other", after: method) == [])
        }
    }

    @Test(arguments: [
        ("Location: /other", "https://a.test/other"), ("Location: z", "https://a.test/x/z"),
        ("Content-Location: https://A.test:443/c", "https://a.test/c"), ("Location: ../..//c", "https://a.test//c"),
        ("Content-Location: ?q", "https://a.test/x/y?q"),
        // Only another origin itself may invalidate its responses.
        ("Location: https://b.test/other", nil), ("Location: http://a.test/other", nil),
        ("Location: https://a.test:8443/other", nil), ("Location: //b.test/", nil), ("Location: mailto:a", nil),
        ("Location: ", nil), ("Location: #f", nil),
    ])
    func urlsOfTheSameOriginGoToo(_ field: String, _ url: String?) throws {
        #expect(try urls(field) == ["https://a.test/x/y?z"] + (url.map { [$0] } ?? []))
    }

    @Test func eachURLIsNamedOnce() throws {
        #expect(try urls("Location: /a", "Content-Location: /a").count == 2)
        #expect(try urls("Location: /a", "Content-Location: /b").count == 3)
    }

    private static let modified = "Last-Modified: \(Trial.date)"

    @Test(
        arguments: [
            (["ETag: \"1\""], .updates), (["ETag: \"2\""], .outdates), (["ETag: W/\"1\""], .outdates),
            (["ETag: \"1\"", "Content-Length: 10"], .updates), (["ETag: \"1\"", "Content-Length: 11"], .outdates),
            (["ETag: \"1\"", "Content-Length: 10, 10"], .updates), ([modified], .updates),
            (["Last-Modified: Mon, 12 Jan 1970 13:46:41 GMT"], .outdates), (["Content-Length: 10"], .nothing),
            (["Content-Length: 11"], .outdates), ([], .nothing), (["ETag: 1"], .nothing),
        ] as [([String], Invalidation.HeadEffect)])
    func headSaysWhetherAStoredResponseHolds(_ fields: [String], _ effect: Invalidation.HeadEffect) throws {
        let stored = try Trial.traits("ETag: \"1\"", Self.modified)
        let head = try Trial.response(fields)
        #expect(Invalidation.effect(ofHead: head.view, on: stored, complete: 10) == effect)
        let error = try Trial.response(fields, status: 404)
        #expect(Invalidation.effect(ofHead: error.view, on: stored, complete: 10) == .nothing)
    }
}
