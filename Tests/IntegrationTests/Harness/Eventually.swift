import Foundation

/// Waits for what no one announces (a descriptor closed, a port no longer listened on): asks again
/// until it is so, and fails with what was awaited after two minutes.
func eventually(
    _ what: String, isolation: isolated (any Actor)? = #isolation, _ holds: () async throws -> Bool
) async throws {
    let end = Date.now + 120
    while try await !holds() {
        guard Date.now < end else { throw TestBedError("waited in vain for \(what)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}
