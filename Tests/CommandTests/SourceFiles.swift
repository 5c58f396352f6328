import Foundation
import Testing

/// The sources of the program, for tests that read them.
enum SourceFiles {
    /// The path of each below Sources, and its text.
    static func all() throws -> [(file: String, text: String)] {
        let sources = URL(filePath: #filePath).appending(path: "../../../Sources").standardized
        let files = try #require(FileManager.default.enumerator(atPath: sources.path)).compactMap { $0 as? String }
            .filter { $0.hasSuffix(".swift") }
        #expect(files.count > 100)
        return try files.map { ($0, try String(contentsOf: sources.appending(path: $0), encoding: .utf8)) }
    }
}
