/// Addresses of 127.0.0.0/8 for tests that choose where a program will listen. No other test has them, whereas a port
/// of 127.0.0.1 that was free a moment ago may be taken by then.
enum LoopbackAddress {
    /// - Returns: the first three numbers, e.g. `127.41.7`.
    static func network() -> String { "127.\(Int.random(in: 1...254)).\(Int.random(in: 0...255))" }
}
