import Foundation

/// Waits for something that nothing announces, like a closed descriptor or port. Polls until it is so, and fails with
/// its description after two minutes.
func eventually(
    _ what: String, isolation: isolated (any Actor)? = #isolation, _ holds: () async throws -> Bool
) async throws {
    let end = Date.now + 120
    while try await !holds() {
        guard Date.now < end else { throw TestBedError("waited in vain for \(what)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}
