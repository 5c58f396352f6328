import PinproxyConfiguration
import PinproxyDaemon
import Testing

@testable import PinproxyIsolation
@testable import pinproxy

/// The lines that configure the proxy for Subversion.
@Suite struct SubversionServersTests {
    private func lines(direct: [String] = [], _ change: (inout ProxyURL) -> Void = { _ in }) throws -> String? {
        let bed = try CommandBed(configuration: "pins: null\n")
        let snapshot = try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.path("state"))
        var proxy = try ProxyURL(snapshot.proxy, inherited: ListenFile(in: "/nothing"))
        change(&proxy)
        return SubversionServers.settings(proxy, direct: direct)?.lines
    }

    @Test func whereTheProxyIs() throws {
        #expect(try lines() == "[global]\nhttp-proxy-host = 127.0.0.1\nhttp-proxy-port = 7467\n")
        #expect(try lines { $0.host = "::1" }?.contains("http-proxy-host = ::1\n") == true)
        #expect(
            try lines(direct: ["localhost", ".example.com"])?.hasSuffix(
                "http-proxy-exceptions = localhost, *.example.com\n") == true)
        // Subversion doesn't support proxies that speak TLS.
        #expect(try lines { $0.scheme = "https" } == nil)
    }

    @Test(arguments: [
        ("pinproxy-run:0a1b", "pinproxy-run", "0a1b"), ("a%20b:c%3Ad:e", "a b", "c:d:e"), ("a:%25(x", nil, nil),
        ("a:x%0Ay", nil, nil), ("a:%20b", nil, nil), ("a:", nil, nil), ("%ff:b", nil, nil),
        ("a:b,c", "a", "b,c"), ("a:b%00c", nil, nil), ("a:b%09", nil, nil),
    ])
    func nameAndPassword(credentials: String, user: String?, password: String?) throws {
        let lines = try #require(try lines { $0.credentials = credentials })
        let expected = user.map { "http-proxy-username = \($0)\nhttp-proxy-password = \(password ?? "")\n" } ?? ""
        #expect(lines == "[global]\nhttp-proxy-host = 127.0.0.1\nhttp-proxy-port = 7467\n" + expected)
    }

    /// No name of NO_PROXY adds a line or a pattern.
    @Test func unfitExceptions() throws {
        #expect(try lines(direct: ["a\nhttp-proxy-host = b", "c,d", "%(e)s"]) == lines())
    }
}
