package import Clients
import EventLoop
import FoundationEssentials
import Glibc
import HTTPWire

/// Begins a run over a running proxy's run socket, and hears what is refused in it. For `pinproxy exec`.
///
/// The run lasts until ``end()``, or until this object or its process is gone.
package final class RunClient {
    /// Readable when there is something to ``receive()``.
    package var descriptor: CInt { call.descriptor }
    package let begun: RunBegun
    private var call: ControlCall

    /// Waits for the proxy's answer.
    /// - Parameters:
    ///   - place: of the proxy's socket.
    ///   - process: that is meant.
    ///   - credentials: `NAME:PASSWORD` of `proxy.users`, if there are any.
    ///   - seconds: how long the proxy has for it.
    package init(
        _ place: StateSocket, process: Int32, token: RunToken, credentials: String?, seconds: Int
    ) throws(ControlFailure) {
        var fields = "Authorization: Bearer \(token.text)\r\n"
        if let credentials { fields += "Proxy-Authorization: Basic \(Data(credentials.utf8).base64EncodedString())\r\n" }
        var call = try ControlCall(place, process: process, seconds: seconds, .post, "/runs", fields: fields)
        begun = try Self.answer(&call)
        _ = fcntl(call.descriptor, F_SETFL, fcntl(call.descriptor, F_GETFL) | O_NONBLOCK)
        self.call = call
    }

    /// What the first line of the proxy's answer says.
    private static func answer(_ call: inout ControlCall) throws(ControlFailure) -> RunBegun {
        let head = try call.head(to: .post)
        guard head.status == 200 else { throw ControlFailure(status: head.status, body: try call.rest()) }
        guard let first = try call.line(), let begun = update(first)?.begun else { throw .broken("it has no first line") }
        return begun
    }

    private static func update(_ line: [UInt8]) -> RunUpdate? {
        try? JSONDecoder.forControl().decode(RunUpdate.self, from: Data(line))
    }

    /// What has come; nil at the end, however that came about. Doesn't wait.
    package func receive() -> [RunUpdate]? {
        var updates: [RunUpdate] = []
        while true {
            do throws(ControlFailure) {
                guard let line = try call.line() else { return updates.isEmpty ? nil : updates }
                if let update = Self.update(line) { updates.append(update) }
            } catch {
                if case .silent = error { return updates }
                return updates.isEmpty ? nil : updates
            }
        }
    }

    /// Answers what was asked. Where there is no room for it, which the proxy leaves as long as it reads, nothing is said.
    package func answer(_ answers: [RunAnswer]) {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        for answer in answers {
            guard let line = try? encoder.encode(answer) else { continue }
            let bytes = [UInt8](line) + [UInt8(ascii: "\n")]
            _ = send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        }
    }

    /// The run is over: what was not told yet follows, then the end.
    package func end() { shutdown(descriptor, CInt(SHUT_WR)) }
}
