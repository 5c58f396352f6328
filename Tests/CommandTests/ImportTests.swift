import Foundation
import Testing

/// Every start pays for what the program is linked with.
@Suite struct ImportTests {
    /// Foundation brings ICU: 40 MB of program, and 8 of memory for an idle process. FoundationEssentials has what is
    /// needed.
    @Test func noRoomImportsTheWholeOfFoundation() throws {
        for (file, text) in try SourceFiles.all() {
            #expect(!text.contains(/(?m)^[a-z ]*import Foundation$/), "\(file)")
        }
    }
}
