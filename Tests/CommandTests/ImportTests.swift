import Foundation
import Testing

/// Every start pays for what the program is linked with.
@Suite struct ImportTests {
    /// Foundation brings ICU: 40 MB of program, and 8 of memory for an idle process. FoundationEssentials has what is
    /// needed.
    @Test func noModuleImportsTheWholeOfFoundation() throws {
        // Who has a URLRequest has it already.
        for (file, text) in try SourceFiles.all() where !file.contains("PinnedSessionFoundation/") {
            #expect(!text.contains(/(?m)^[a-z ]*import Foundation$/), "\(file)")
        }
    }
}
