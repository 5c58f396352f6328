import Foundation
import Testing

/// docs/interception.md names the test for each claim: none of them may be missing.
@Suite struct InterceptionPageTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every `Suite/test` on the page.
    private func named() throws -> [(suite: String, test: String)] {
        let page = try String(contentsOf: Self.root.appending(path: "docs/interception.md"), encoding: .utf8)
        return page.matches(of: /`(?<suite>[A-Z]\w*Tests)\/(?<test>[^`]+)`/).map {
            (String($0.output.suite), String($0.output.test))
        }
    }

    /// The sources of each suite. A suite may have a namesake in another target, and extensions in other files.
    private func sources() throws -> [String] {
        let folder = Self.root.appending(path: "Tests").path
        let files = try #require(FileManager.default.enumerator(atPath: folder))
        return try files.compactMap { $0 as? String }.filter { $0.hasSuffix("Tests.swift") }
            .map { try String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8) }
    }

    @Test func everyTestThatThePageNamesExists() throws {
        let named = try named()
        let sources = try sources()
        #expect(named.count > 40, "the page names only \(named.count) tests")
        for (suite, test) in named {
            let exists = sources.contains { source in
                (source.contains("struct \(suite) ") || source.contains("extension \(suite) "))
                    && (source.contains("func \(test)(") || source.contains("func test("))
            }
            #expect(exists, "\(suite)/\(test) is named in docs/interception.md and does not exist")
        }
    }
}
