import Foundation

/// What this machine supports.
enum Probe {
    /// New in OpenSSL 3.5: X25519MLKEM768 and ML-DSA. The proxy loads the same library as the command.
    static let hasPostQuantum = succeeds(["sh", "-c", "openssl list -kem-algorithms | grep -q X25519MLKEM768"])

    /// Whether the command can be run and exits with 0.
    static func succeeds(_ command: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
