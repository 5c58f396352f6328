import Foundation
import Testing

/// The address sanitizer, if the tests are built with it (docs/testing.md). The proxy that they start then has it too,
/// and its reports fail the test.
enum Sanitizer {
    static let isOn = dlsym(nil, "__asan_init") != nil || !environment.isEmpty

    /// The sanitizer's settings, which every program of ours inherits from the tests.
    static let environment = ProcessInfo.processInfo.environment.filter {
        $0.key == "ASAN_OPTIONS" || $0.key == "LSAN_OPTIONS"
    }

    /// Records an issue for a report in a program's output.
    static func check(_ lines: [String], of program: String) {
        guard let start = lines.firstIndex(where: isReport) else { return }
        let report = lines[start...].prefix(60).joined(separator: "\n")
        Issue.record(Comment(rawValue: "the sanitizer stopped \(program)\n\(report)"))
    }

    /// The first line of a report: `==123==ERROR: AddressSanitizer: heap-use-after-free on address …`
    static func isReport(_ line: String) -> Bool {
        line.contains("ERROR: AddressSanitizer") || line.contains("ERROR: LeakSanitizer")
    }
}
