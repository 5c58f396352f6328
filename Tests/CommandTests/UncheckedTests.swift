import Foundation
import Testing

/// Each disabled check of the compiler has its reason beside it, in a comment.
///
/// - `@unchecked Sendable`: `//` on its line, just before it, or in the line after it.
/// - `nonisolated(unsafe)`: a comment on its line or just before it.
/// - `@exclusivity(unchecked)`: the same; or `//` before the first of the type's properties that have it.
@Suite struct UncheckedTests {
    @Test func everyUseHasItsReason() throws {
        for (file, text) in try SourceFiles.all() where text.contains("unchecked") || text.contains("(unsafe)") {
            let faults = Self.faults(in: text)
            #expect(faults.isEmpty, "\(file): \(faults.joined(separator: "; "))")
        }
    }

    @Test(arguments: [
        "final class A: @unchecked Sendable {\n    let a: P\n}",
        "/// A class.\nfinal class A: @unchecked Sendable {\n    let a: P\n    // Too late.\n}",
        "// Too early.\n\nfinal class A: @unchecked Sendable {}",
        "nonisolated(unsafe) var a = 1",
        "@exclusivity(unchecked) var a = 1",
        "// About b.\nvar b = 1\n@exclusivity(unchecked) var a = 1",
        """
        class A {\n// Stored whole.\n@exclusivity(unchecked) var a = 1\n}\nclass B {\n@exclusivity(unchecked) var b = \
        1\n}
        """,
        "// Stored whole.\n@exclusivity(unchecked) var a = 1\nfunc f() {}\n@exclusivity(unchecked) var b = 1",
        "class A {\n    /// What it is.\n    @exclusivity(unchecked) var a = 1\n}",
    ]) func aUseWithoutOneIsFound(_ text: String) {
        #expect(!Self.faults(in: text).isEmpty)
    }

    @Test(arguments: [
        "final class A: @unchecked Sendable {\n    // Not changed after init.\n    let a: P\n}",
        "// Not changed.\nfinal class A: @unchecked Sendable {}",
        "final class A: @unchecked Sendable {}  // Not changed.",
        "/// Read-only.\nnonisolated(unsafe) let a = 1",
        """
        // Stored whole.\n@exclusivity(unchecked) var a = 1\n/// Another.\n@exclusivity(unchecked) var b = 1\n\nvar c \
        = 1\n@exclusivity(unchecked) var d = 1
        """,
        "// @unchecked Sendable",
    ]) func aUseWithOneIsNotFound(_ text: String) {
        #expect(Self.faults(in: text) == [])
    }

    private static func faults(in text: String) -> [String] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var faults: [String] = []
        // A reason precedes the unchecked properties of a type.
        var isGiven = false
        for (number, line) in lines.enumerated() {
            let code = code(line)
            if code.contains(/\b(func|init|class|struct|enum|extension|protocol)\b/) { isGiven = false }
            let before = number > 0 ? lines[number - 1] : ""
            let beside = hasReason(line) || hasReason(commentBefore(number, lines))
            if code.contains("@unchecked Sendable"), !beside,
                !(number + 1 < lines.count && hasReason(lines[number + 1]))
            {
                faults.append("line \(number + 1) has no reason for @unchecked Sendable")
            }
            if code.contains("nonisolated(unsafe)"), !beside, !before.contains("//") {
                faults.append("line \(number + 1) has no reason for nonisolated(unsafe)")
            }
            if code.contains("@exclusivity(unchecked)") {
                isGiven = isGiven || beside
                if !isGiven { faults.append("line \(number + 1) has no reason for @exclusivity(unchecked)") }
            }
        }
        return faults
    }

    /// The nearest line above that isn't documentation, if it is a comment.
    private static func commentBefore(_ number: Int, _ lines: [Substring]) -> Substring {
        lines[..<number].last { !$0.drop(while: \.isWhitespace).hasPrefix("///") }.flatMap {
            code($0).allSatisfy(\.isWhitespace) ? $0 : nil
        } ?? ""
    }

    private static func code(_ line: Substring) -> Substring {
        line.range(of: "//").map { line[..<$0.lowerBound] } ?? line
    }

    /// Whether it is a comment but not documentation, which says what something is for.
    private static func hasReason(_ line: Substring) -> Bool { line.contains(/(^|[^\/])\/\/ \S/) }
}
