/// A function of bytes that a fuzzer calls. It states invariants, and traps where one is violated.
package struct FuzzTarget: Sendable {
    /// The name in `make fuzz TARGET=` and in the folders of `Tests/Fuzz`.
    package let name: String
    package let run: @Sendable ([UInt8]) -> Void

    init(_ name: String, _ run: @escaping @Sendable ([UInt8]) -> Void) {
        self.name = name
        self.run = run
    }

    package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// Ends the program, even a release build, if a statement doesn't hold.
func require(_ holds: Bool, _ statement: @autoclosure () -> String) {
    if !holds { fatalError("does not hold: \(statement())") }
}
