import Foundation
import FoundationNetworking
import PinnedSession
import PinnedSessionFoundation
import Testing

/// URLRequest and HTTPURLResponse of FoundationNetworking at a session's edge.
@Suite(.timeLimit(.minutes(5)))
struct LibraryFoundationTests {
    @Test func aURLRequestIsMade() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            var request = URLRequest(url: try #require(URL(string: bed.url + "/echo?x=1")))
            request.httpMethod = "PUT"
            request.httpBody = Data([1, 2, 3])
            request.setValue("one", forHTTPHeaderField: "X-Mine")
            request.setValue("99", forHTTPHeaderField: "Content-Length")
            request.setValue("Bearer s3cret", forHTTPHeaderField: "Authorization")
            request.cachePolicy = .reloadIgnoringLocalCacheData
            let (body, response) = try await session.data(for: request)
            let echo = try Echo(Array(body))
            #expect((echo.method, echo.target, echo.length) == ("PUT", "/echo?x=1", 3))
            #expect(echo.field("x-mine") == "one" && echo.field("cache-control") == "no-cache")
            #expect(response.statusCode == 200 && response.url == request.url)
            #expect(response.value(forHTTPHeaderField: "content-type") == "application/json")
            #expect(!"\(try HTTPRequest(request).fields)".contains("s3cret"))
            let uploaded = try await session.upload(for: request, from: Data([1]))
            #expect(try Echo(Array(uploaded.0)).length == 1)
            let file = URL(fileURLWithPath: try bed.bed.file("up", "four"))
            #expect(try await Echo(Array(session.upload(for: request, fromFile: file).0)).length == 4)
            let target = URL(fileURLWithPath: bed.bed.path("down"))
            #expect(try await session.download(for: request, to: target).statusCode == 200)
            #expect(try Echo(Array(Data(contentsOf: target))).length == 3)
        }
    }

    @Test func whatASessionCannotSendIsAnError() throws {
        let url = try #require(URL(string: "https://api.localhost/?token=s3cret"))
        func error(_ change: (inout URLRequest) -> Void) -> SessionError? {
            var request = URLRequest(url: url)
            change(&request)
            return #expect(throws: SessionError.self) { try HTTPRequest(request) }
        }
        for error in [
            error { $0.url = nil }, error { $0.setValue("x", forHTTPHeaderField: "Host") },
            error { $0.httpMethod = "G T" }, error { $0.httpBodyStream = InputStream(data: Data([1])) },
        ] { #expect(error?.code == -1000 && error?.localizedDescription.contains("s3cret") == false) }
        #expect(throws: Never.self) { try HTTPRequest(URLRequest(url: url)) }
    }

    /// The default isn't a wish: the session's stays.
    @Test(arguments: [
        (60.0, nil as Duration?), (.nan, nil), (0.5, .milliseconds(500)), (-1, .zero),
        (.infinity, .seconds(1_000_000_000)),
    ])
    func itsTimeoutIsTheRequests(_ interval: TimeInterval, _ timeout: Duration?) throws {
        var request = URLRequest(url: try #require(URL(string: "https://api.localhost/")))
        request.timeoutInterval = interval
        #expect(try HTTPRequest(request).timeout == timeout)
    }
}
