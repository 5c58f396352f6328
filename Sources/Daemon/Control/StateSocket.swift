package import EventLoop
import Security

/// A socket of the state directory, as a command connects to it: no link leads elsewhere.
package struct StateSocket: Sendable {
    private let directory: TrustedDirectory
    private let name: String

    init(_ name: String, in directory: String) {
        self.name = name
        self.directory = TrustedDirectory(directory)
    }

    package var path: String { "\(directory.path)/\(name)" }

    /// Blocks, for at most `seconds` at each read and write.
    func connect(seconds: Int) throws(ControlFailure) -> Descriptor {
        try connect { (path) throws(SystemError) in try UnixSocket.connect(to: path, seconds: seconds) }
    }

    /// Waits for nothing.
    package func connectAtOnce() throws(ControlFailure) -> Descriptor {
        try connect { (path) throws(SystemError) in try UnixSocket.connectAtOnce(to: path) }
    }

    private func connect(
        _ body: (_ path: String) throws(SystemError) -> Descriptor
    ) throws(ControlFailure) -> Descriptor {
        let socket: HeldSocket
        do throws(FileProblem) {
            socket = try directory.socket(name)
        } catch .system(let code) {
            throw .unreachable(SystemError(code: code, call: "open"))
        } catch {
            throw .untrusted("\(error)")
        }
        do throws(SystemError) {
            return try body(socket.path)
        } catch {
            throw .unreachable(error)
        }
    }
}
