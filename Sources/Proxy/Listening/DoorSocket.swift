import Configuration
import EventLoop
import Logging

/// `door.sock` in the state directory: the listener for what leaves a command's own network (`pinproxy exec --isolated` and
/// `--transparent`).
///
/// The socket is the mark. A client that comes by it is not of this machine (``Arrival/place``), whoever has made the connection, so
/// that it reaches none of the machine's loopback services. A program in such a network can neither choose another way nor
/// drop the mark.
package enum DoorSocket {
    package static func place(in stateDirectory: String) -> StateSocket { StateSocket("door.sock", in: stateDirectory) }
}

extension ProxyDaemon {
    /// Opens it. Without it the proxy serves all other clients, and says so.
    func openDoor() -> ListeningSocket? {
        let path = DoorSocket.place(in: snapshot.stateDirectory).path
        do throws(SystemError) {
            // Whoever may use the proxy's port may use this one: allow_clients and clients hold here as well.
            return try .door(at: path, SocketAccess(mode: snapshot.proxy.owner == nil ? 0o666 : 0o600))
        } catch {
            logger.warning(
                "control.failed",
                metadata: [
                    "cause": "\(error.text(ofSocketAt: path))",
                    "effect": "commands of pinproxy exec --isolated and --transparent can't reach this proxy",
                ])
            return nil
        }
    }
}
