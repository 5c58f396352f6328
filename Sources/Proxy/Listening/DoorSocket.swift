import Configuration
import EventLoop
import Logging

/// `door.sock` in the state directory: the listener for what leaves a command's own network (`pinproxy exec --isolated` and
/// `--transparent`).
///
/// The socket identifies these clients. They count as remote (``Arrival/place``), whatever process connects, and reach
/// none of the machine's loopback services. A program in such a network can't choose another way out,
/// nor hide that it came this way.
package enum DoorSocket {
    package static func place(in stateDirectory: String) -> StateSocket { StateSocket("door.sock", in: stateDirectory) }
}

extension ProxyDaemon {
    /// Opens it. Without it the proxy serves all other clients, and says so.
    func openDoor() -> ListeningSocket? {
        let path = DoorSocket.place(in: snapshot.stateDirectory).path
        do throws(SystemError) {
            // Local users may use it as they may use the port: allow_clients and clients hold here too.
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
