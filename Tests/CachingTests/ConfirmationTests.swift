import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct ConfirmationTests {
    private func text(_ response: OwnedResponse?) -> String? {
        response.map { String(decoding: $0.view.bytes.array, as: UTF8.self) }
    }

    @Test func a304ReplacesFieldsButThoseOfTheBody() throws {
        let stored = try Trial.response([
            "Date: Mon, 12 Jan 1970 13:00:00 GMT", "ETag: \"1\"", "X: old", "X: older", "Content-Length: 5",
            "Content-Encoding: gzip", "Y: stays",
        ])
        let update = try Trial.response(
            [
                "Date: \(Trial.date)", "x: new", "Content-Length: 0", "Content-Encoding: br", "Connection: Z, close",
                "Z: hop",
                "Set-Cookie: a=b", "Keep-Alive: 5",
            ], status: 304)
        #expect(
            text(Confirmation.updated(stored, by: update.view)) == """
                HTTP/1.1 200 X\r
                ETag: \"1\"\r
                Content-Length: 5\r
                Content-Encoding: gzip\r
                Y: stays\r
                Date: \(Trial.date)\r
                x: new\r
                \r\n
                """)
    }

    @Test(arguments: [
        ("ETag: \"1\"", "ETag: \"1\"", true), ("ETag: \"1\"", "ETag: \"2\"", false),
        ("ETag: W/\"1\"", "ETag: W/\"1\"", true), ("ETag: W/\"1\"", "ETag: \"1\"", false),
        ("ETag: \"1\"", "X: y", true), ("X: y", "ETag: \"1\"", false),
        ("Last-Modified: \(Trial.date)", "Last-Modified: \(Trial.date)", true),
        ("Last-Modified: \(Trial.date)", "Last-Modified: Mon, 12 Jan 1970 13:46:41 GMT", false),
    ])
    func a304SpeaksOfTheResponseWithItsValidator(_ stored: String, _ update: String, _ holds: Bool) throws {
        #expect(Confirmation.confirms(try Trial.traits(update, status: 304), try Trial.traits(stored)) == holds)
    }

    /// Known fields can't be removed by Connection, which would keep an old lifetime.
    @Test func connectionKeepsNoLifetime() throws {
        let stored = try Trial.response(["Cache-Control: max-age=9"])
        let update = try Trial.response(["Connection: cache-control", "Cache-Control: no-cache"], status: 304)
        #expect(Confirmation.updated(stored, by: update.view)?.text.contains("no-cache") == true)
    }

    /// Age and Date belong to one response, and are not kept for the next.
    @Test func ageAndDateEnd() throws {
        let stored = try Trial.response(["Age: 50", "Date: \(Trial.date)", "X: y"])
        let update = try Trial.response(["ETag: 1"], status: 304)
        #expect(Confirmation.updated(stored, by: update.view)?.text == "HTTP/1.1 200 X\r\nX: y\r\n\r\n")
        #expect(
            Confirmation.updated(stored, by: update.view, received: 0)?.text
                == "HTTP/1.1 200 X\r\nX: y\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n")
    }

    /// The rules have judged the type that the body arrived with; and some servers send a default one.
    @Test func theTypeStays() throws {
        let stored = try Trial.response(["Content-Type: image/png", "ETag: \"1\""])
        let update = try Trial.response(["Content-Type: text/html", "ETag: x", "Content-Digest: a"], status: 304)
        #expect(Confirmation.updated(stored, by: update.view)?.text == stored.text)
    }

    @Test func theClientThatAskedGetsItsCookies() throws {
        let stored = try Trial.response(["X: y"])
        let update = try Trial.response(["Set-Cookie: a=b", "set-cookie: c=d", "Z: z"], status: 304)
        #expect(
            Confirmation.answer(stored, by: update.view)?.text
                == "HTTP/1.1 200 X\r\nX: y\r\nSet-Cookie: a=b\r\nset-cookie: c=d\r\n\r\n")
        let plain = try Trial.response(["Z: z"], status: 304)
        #expect(Confirmation.answer(stored, by: plain.view)?.text == stored.text)
    }

    @Test func theOriginIsAskedByBothValidators() throws {
        let stored = try Trial.response(["ETag: W/\"1\"", "Last-Modified: \(Trial.date)"])
        let edits = Confirmation.edits(for: stored).list.map { "\($0.name): \($0.action)" }
        #expect(
            edits.suffix(2) == ["If-None-Match: set(\"W/\\\"1\\\"\")", "If-Modified-Since: set(\"\(Trial.date)\")"])
    }

    @Test func unreadableValidatorsAreNotSent() throws {
        let stored = try Trial.response([
            "ETag: 1", "Last-Modified: soon", "ETag: \"2\"", "Last-Modified: \(Trial.date)",
        ])
        let edits = Confirmation.edits(for: stored).list.map { "\($0.name): \($0.action)" }
        #expect(edits.suffix(2) == ["If-None-Match: set(\"\\\"2\\\"\")", "If-Modified-Since: set(\"\(Trial.date)\")"])
        let bytes = Array("HTTP/1.1 200 X\r\nETag: \"".utf8) + [0xFF] + Array("\"\r\n\r\n".utf8)
        #expect(Confirmation.edits(for: try OwnedResponse(bytes)).list.count == 4)
    }
}
