import Foundation
import Testing

extension PythonPeer {
    /// The last thing that `Peers/silent.py` does on each connection.
    enum Stage: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case backlog, accept, hello, handshake, request
        case halfHead = "half-head"
        case `continue`, `switch`, head
        case halfBody = "half-body"
        case halfChunk = "half-chunk"
        case answer

        var testDescription: String { rawValue }
    }

    /// What it does after that.
    enum Behaviour: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case silence
        /// Sends a byte now and then.
        case trickle
        /// Resets the connection.
        case vanish

        var testDescription: String { rawValue }
    }

    /// A server that goes silent after `stage`.
    /// - Parameter chain: nil: it speaks plain HTTP.
    static func silent(
        until stage: Stage, then behaviour: Behaviour = .silence, in bed: TestBed, chain: ServedChain? = nil,
        launcher: [String] = []
    ) async throws -> PythonPeer {
        var arguments = ["--until", stage.rawValue, "--then", behaviour.rawValue]
        if let chain {
            arguments += ["--certificate", try bed.file("silent.pem", chain.pem)]
            arguments += ["--key", try bed.file("silent.key", chain.keyPEM)]
        }
        return try await PythonPeer(in: bed, script: "silent.py", arguments, launcher: launcher)
    }
}

/// What an idle proxy holds.
struct Footprint: Sendable {
    fileprivate let descriptors: Int
}

extension SharedBed {
    /// Measures after a first exchange, which opens what stays open. Needs a short `idle_upstream`.
    func footprint() async throws -> Footprint {
        try await servesOthers()
        try await eventually("the first exchange to leave nothing") { try hasNoConnection() }
        return Footprint(descriptors: try proxy.openDescriptors())
    }

    /// Another client's request is answered.
    func servesOthers() async throws {
        let run = try await curl("-i", plainURL + "/echo")
        #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
    }

    /// The proxy is alive, has no task left, and has closed all descriptors that it opened since.
    func hasGivenBack(since before: Footprint) async throws {
        try await eventually("descriptors to be closed and tasks to be ended") {
            try await tasks.list().isEmpty && hasNoConnection() && (try proxy.openDescriptors()) <= before.descriptors
        }
        try await servesOthers()
        #expect(proxy.process.unaskedEnding == nil)
    }

    /// No TCP socket is connected or connecting.
    private func hasNoConnection() throws -> Bool { try proxy.openSockets(to: 0) == proxy.openSockets() }
}
