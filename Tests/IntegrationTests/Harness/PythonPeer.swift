import Foundation

/// A peer written in Python (`Peers/`) for what well-behaved servers don't do. It speaks JSON lines:
/// first `{"event": "ready", "port": …}`, then what it sees.
struct PythonPeer: Sendable {
    let process: ChildProcess
    let port: UInt16
    let events: EventLog

    init(
        in bed: TestBed, script: String, _ arguments: [String] = [], interpreter: String = python,
        launcher: [String] = []
    ) async throws {
        process = try await bed.start(
            launcher + (interpreter == "node" ? [interpreter] : [interpreter, "-u"]) + [Self.path(script)] + arguments,
            mergingErrors: true)
        events = EventLog(lines: process.output)
        guard let port = try await events.first("ready")["port"].flatMap({ UInt16($0) }) else {
            throw TestBedError("\(script) names no port")
        }
        self.port = port
    }

    /// `Peers/origin.py`: an origin that behaves as the requested path says.
    static func origin(
        in bed: TestBed, name: String = "origin", chain: ServedChain?, _ arguments: [String] = [],
        launcher: [String] = []
    ) async throws -> PythonPeer {
        guard let chain else {
            return try await PythonPeer(in: bed, script: "origin.py", ["--plain"] + arguments, launcher: launcher)
        }
        let certificate = try bed.file("\(name).pem", chain.pem)
        let key = try bed.file("\(name).key", chain.keyPEM)
        return try await PythonPeer(
            in: bed, script: "origin.py", ["--certificate", certificate, "--key", key] + arguments, launcher: launcher)
    }

    /// The system's interpreter: the peers use the standard library only.
    static let python = "/usr/bin/python3"

    /// The interpreter of `.build/python`, which `make test` fills with packages from PyPI.
    static let pythonWithPackages: String =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path + "/.build/python/bin/python3"

    static func path(_ script: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path
            + "/Peers/" + script
    }
}
