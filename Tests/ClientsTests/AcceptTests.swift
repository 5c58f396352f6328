import Testing

@testable import PinproxyClients

@Suite struct AcceptTests {
    private func prefersHTML(_ value: String) -> Bool { Accept.prefersHTML(Array(value.utf8).span) }

    @Test(arguments: [
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html", "TEXT/HTML;level=1",
        "application/xhtml+xml", "application/json;q=0.5, text/html;q=0.5", "text/html, */*",
        "image/png , text/html ; q=0.001",
    ])
    func browsersGetHTML(_ value: String) {
        #expect(prefersHTML(value))
    }

    @Test(arguments: [
        "", "*/*", "text/*", "text/html;q=0", "text/html;q=0.000", "text/html;q=0.4, application/json;q=0.41",
        "application/problem+json, text/html;q=0.9", "text/html;q=0.9, */*", "text/htmlx", "xtext/html",
        "application/json", "text/html;q=x", "text/html;q=", ",,,,,,,,,,,", "text/html;q=.5",
    ])
    func programsGetJSON(_ value: String) {
        #expect(!prefersHTML(value))
    }
}
