import Foundation
import Testing

/// Every test exists that docs/SECURITY.md names as evidence.
@Suite struct ThreatModelTests {
    @Test func theTestsThatItNamesExist() throws {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized
        let page = try String(contentsOf: root.appending(path: "docs/SECURITY.md"), encoding: .utf8)
        let named = Set(page.matches(of: /`(\w+Tests)`/).map { String($0.1) })
        #expect(named.count > 30)
        let files = try #require(FileManager.default.enumerator(atPath: root.appending(path: "Tests").path))
        let suites = Set(
            files.compactMap {
                ($0 as? String)?.split(separator: "/").last.map { String($0.replacing(".swift", with: "")) }
            })
        #expect(named.subtracting(suites).sorted() == [])
    }
}
