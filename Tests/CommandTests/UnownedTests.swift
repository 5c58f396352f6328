import Foundation
import Testing

/// Loading an `unowned` reference to a released object crashes the process. Each use gives a reason why that can't
/// happen, in a comment on its line or just before it: `// unowned: REASON`.
@Suite struct UnownedTests {
    @Test func everyUseHasItsReason() throws {
        for (file, text) in try SourceFiles.all() {
            let faults = text.contains("unowned") ? Self.faults(in: text) : []
            #expect(faults.isEmpty, "\(file): \(faults.joined(separator: "; "))")
        }
    }

    @Test(arguments: [
        "unowned let owner: Owner",
        "private unowned var owner: Owner?",
        "let call = { [unowned owner] in owner.call() }",
        "// unowned: too far away\n\nunowned let owner: Owner",
        "// kept\nunowned let owner: Owner",
        "// unowned:\nunowned let owner: Owner",
        "// unowned: about the first\nunowned let a: A\nunowned let b: B",
        "// unowned: never checked\nunowned(unsafe) let owner: Owner",
        "// unowned: kept\nlet call = { [unowned owner] in\n  owner.end()\n}",
        "// unowned: kept\nlet call = { [unowned owner] in owner.end(); owner.go() }",
    ]) func aUseWithoutOneIsFound(_ text: String) {
        #expect(!Self.faults(in: text).isEmpty)
    }

    @Test(arguments: [
        "// unowned: kept\nunowned let owner: Owner",
        "unowned let owner: Owner  // unowned: kept",
        "/// The owner.\n// unowned: kept,\n// on two lines.\nprivate unowned let owner: Owner",
        "// unowned: kept\nlet call = { [unowned owner] in owner.call() }",
        "// about unowned references",
        "let disowned = 1",
    ]) func aUseWithOneIsNotFound(_ text: String) {
        #expect(Self.faults(in: text) == [])
    }

    private static func faults(in text: String) -> [String] {
        var faults: [String] = []
        // Whether the comment just before the line gives one.
        var hasReason = false
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let comment = line.range(of: "//").map { line[$0.lowerBound...] } ?? ""
            let code = line.dropLast(comment.count)
            if comment.contains(/\/\/ unowned: \S/) { hasReason = true }
            guard !code.allSatisfy(\.isWhitespace) else {
                if comment.isEmpty { hasReason = false }
                continue
            }
            if code.contains(/\bunowned\b/) {
                if !hasReason { faults.append("line \(number + 1) has no reason") }
                if code.contains("unowned(unsafe)") { faults.append("line \(number + 1) is unsafe") }
                // Each statement loads the reference again, and the first may have released the object.
                if code.contains("[unowned"), !code.contains("}") || code.contains(";") {
                    faults.append("line \(number + 1) captures it in a closure of several statements")
                }
            }
            hasReason = false
        }
        return faults
    }
}
