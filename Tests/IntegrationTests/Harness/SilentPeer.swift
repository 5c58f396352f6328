import Foundation
import Testing

extension PythonPeer {
    /// How far `Peers/silent.py` goes with each connection.
    enum Stage: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case backlog, accept, hello, handshake, request
        case halfHead = "half-head"
        case `continue`, `switch`, head
        case halfBody = "half-body"
        case halfChunk = "half-chunk"
        case answer

        var testDescription: String { rawValue }
    }

    /// A server that says nothing more once it has come that far.
    /// - Parameter chain: nil: it speaks in the clear.
    static func silent(
        until stage: Stage, in bed: TestBed, chain: ServedChain? = nil, launcher: [String] = []
    ) async throws -> PythonPeer {
        var arguments = ["--until", stage.rawValue]
        if let chain {
            arguments += ["--certificate", try bed.file("silent.pem", chain.pem), "--key", try bed.file("silent.key", chain.keyPEM)]
        }
        return try await PythonPeer(in: bed, script: "silent.py", arguments, launcher: launcher)
    }
}

/// What a proxy holds while nothing is asked of it.
struct Footprint: Sendable {
    fileprivate let descriptors: Int
}

extension SharedBed {
    /// What the proxy holds after a first exchange, which opens what is kept for good. Needs a short `idle_upstream`.
    func footprint() async throws -> Footprint {
        try await servesOthers()
        try await eventually("the first exchange to leave nothing") { try isAtRest() }
        return Footprint(descriptors: try proxy.openDescriptors())
    }

    /// A client that asks for something else gets it.
    func servesOthers() async throws {
        let run = try await curl("-i", plainURL + "/echo")
        #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
    }

    /// The proxy lives, has ended every task, and has closed every descriptor that was opened since.
    func hasGivenBack(since before: Footprint) async throws {
        try await eventually("descriptors to be closed and tasks to be ended") {
            try await tasks.list().isEmpty && isAtRest() && (try proxy.openDescriptors()) <= before.descriptors
        }
        try await servesOthers()
        #expect(proxy.process.unaskedEnding == nil)
    }

    /// Its sockets listen, and nothing is connected or dialled.
    private func isAtRest() throws -> Bool { try proxy.openSockets(to: 0) == proxy.openSockets() }
}
