import Foundation
import Testing

/// What the program is linked with, it pays for at every start.
@Suite struct ImportTests {
    /// Foundation brings ICU: 40 MB of program, and 8 of memory for a process that does nothing. What is needed of it
    /// is in FoundationEssentials.
    @Test func noRoomImportsTheWholeOfFoundation() throws {
        let sources = URL(filePath: #filePath).appending(path: "../../../Sources").standardized
        let files = try #require(FileManager.default.enumerator(atPath: sources.path)).compactMap { $0 as? String }
            .filter { $0.hasSuffix(".swift") }
        #expect(files.count > 100)
        for file in files {
            let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            #expect(!text.contains(/(?m)^[a-z ]*import Foundation$/), "\(file)")
        }
    }
}
