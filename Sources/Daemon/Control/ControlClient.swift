import FoundationEssentials
package import HTTPWire

/// Asks a running proxy over its control socket, and waits for the answer. For the commands.
package struct ControlClient {
    private static let longestAnswer = 64 << 20

    private let socket: StateSocket
    private let process: Int32
    private let seconds: Int

    /// - Parameters:
    ///   - process: that is meant.
    ///   - seconds: how long it has for its answer.
    package init(_ socket: StateSocket, process: Int32, seconds: Int) {
        self.socket = socket
        self.process = process
        self.seconds = seconds
    }

    /// - Parameter accepting: a status besides 200 with which the answer comes.
    package func ask<Answer: Decodable>(
        _ method: HTTPWire.Method, _ target: String, accepting: Int = 200, as type: Answer.Type = Answer.self
    ) throws(ControlFailure) -> Answer {
        var call = try ControlCall(
            socket, process: process, seconds: seconds, method, target, fields: "Connection: close\r\n")
        let head = try call.head(to: method)
        let body = try call.rest(limit: Self.longestAnswer)
        if case .known(let length) = head.bodyLength, length != UInt64(body.count) { throw .broken("it is cut short") }
        guard head.status == 200 || head.status == accepting else { throw ControlFailure(status: head.status, body: body) }
        do {
            return try JSONDecoder.forControl().decode(type, from: Data(body))
        } catch {
            throw .broken("\(error)")
        }
    }
}
