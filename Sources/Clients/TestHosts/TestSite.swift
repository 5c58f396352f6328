/// What ``Configuration/TestHost`` serves: enough of each protocol for one successful call.
package enum TestSite {
    package struct Page: Sendable {
        package let type: String
        package let text: String
    }

    /// For every other path.
    package static let greeting = "pinproxy answers for this host itself."

    /// - Parameter site: `https://HOST`, for pages that name it.
    package static func page(at target: String, of site: String) -> Page {
        let path = String(target.prefix { $0 != "?" })
        return pages(of: site)[path] ?? Page(type: "text/plain; charset=utf-8", text: greeting + "\n")
    }

    package static func pages(of site: String) -> [String: Page] {
        [
            "/repository.git/info/refs": Page(
                type: "text/plain", text: String(repeating: "1", count: 40) + "\trefs/heads/main\n"),
            "/repository.git/HEAD": Page(type: "text/plain", text: "ref: refs/heads/main\n"),
            "/lfs/locks": Page(type: "application/vnd.git-lfs+json", text: "{\"locks\": []}\n"),
            "/simple/pinproxy-test/": Page(
                type: "text/html",
                text: "<!DOCTYPE html><a href=\"\(wheel)\" data-core-metadata=\"true\">\(wheel)</a>\n"),
            "/simple/pinproxy-test/\(wheel).metadata": Page(
                type: "text/plain", text: "Metadata-Version: 2.1\nName: pinproxy-test\nVersion: 1.0\n"),
            "/npm/pinproxy-test": Page(
                type: "application/json",
                text: """
                    {"name": "pinproxy-test", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": \
                    "pinproxy-test", "version": "1.0.0"}}}

                    """),
            "/npm/-/ping": Page(type: "application/json", text: "{}\n"),
            "/cargo/config.json": Page(
                type: "application/json", text: "{\"dl\": \"\(site)/cargo\", \"api\": \"\(site)/cargo\"}\n"),
            "/cargo/api/v1/crates": Page(
                type: "application/json", text: "{\"crates\": [], \"meta\": {\"total\": 0}}\n"),
            "/composer/packages.json": Page(
                type: "application/json",
                text: """
                    {"packages": {"pinproxy/test": {"1.0.0": {"name": "pinproxy/test", "version": "1.0.0"}}}}

                    """),
            "/aws": Page(
                type: "application/xml",
                text: """
                    <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>aws</Name>\
                    </ListBucketResult>

                    """),
        ]
    }

    private static let wheel = "pinproxy_test-1.0-py3-none-any.whl"
}
