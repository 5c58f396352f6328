import Foundation

/// The executables that `swift build` made beside the tests.
enum Executables {
    static func path(_ name: String) -> String {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return (tests as NSString).deletingLastPathComponent + "/" + name
    }

    static let pinproxy = path("pinproxy")
}
