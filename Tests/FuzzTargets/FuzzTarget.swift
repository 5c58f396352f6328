/// A function of bytes that a fuzzer calls. It states what must hold of them, and traps where that doesn't hold.
package struct FuzzTarget: Sendable {
    /// As `make fuzz TARGET=` and the folders of `Tests/Fuzz` have it.
    package let name: String
    package let run: @Sendable ([UInt8]) -> Void

    init(_ name: String, _ run: @escaping @Sendable ([UInt8]) -> Void) {
        self.name = name
        self.run = run
    }

    package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// Ends the program, also a release build's, if a statement doesn't hold.
func require(_ holds: Bool, _ statement: @autoclosure () -> String) {
    if !holds { fatalError("does not hold: \(statement())") }
}
