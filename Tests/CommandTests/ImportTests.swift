import Foundation
import Testing

/// What the program is linked with, it pays for at every start.
@Suite struct ImportTests {
    /// Foundation brings ICU: 40 MB of program, and 8 of memory for a process that does nothing. What is needed of it
    /// is in FoundationEssentials.
    @Test func noRoomImportsTheWholeOfFoundation() throws {
        for (file, text) in try SourceFiles.all() {
            #expect(!text.contains(/(?m)^[a-z ]*import Foundation$/), "\(file)")
        }
    }
}
