import PinproxyHTTPWire
import Testing

@testable import PinproxyClients

@Suite struct ExplainCommandLineTests {
    /// Whatever a client requested is one shell word.
    @Test(arguments: [
        ("api.test:443", "GET", "/x", "pinproxy explain api.test --path /x"),
        ("api.test:8443", "GET", "/x", "pinproxy explain api.test:8443 --path /x"),
        ("api.test:80", "POST", "/x", "pinproxy explain api.test:80 --path /x --method POST"),
        ("[2001:db8::1]:443", "GET", "/", "pinproxy explain [2001:db8::1] --path /"),
        ("[2001:db8::1]:8443", "GET", "/", "pinproxy explain [2001:db8::1]:8443 --path /"),
        (
            "api.test:443", "GET", "/it's $(here) & there",
            "pinproxy explain api.test --path '/it'\\''s $(here) & there'"
        ),
        ("api.test:443", "M-'X", "", "pinproxy explain api.test --path PATH --method 'M-'\\''X'"),
    ])
    func itCanBePasted(_ authority: String, _ method: String, _ path: String, _ line: String) throws {
        let authority = try Authority.parse(authority, defaultPort: nil).get()
        #expect(ExplainCommandLine(authority, method: method, path: path).description == line)
    }
}
