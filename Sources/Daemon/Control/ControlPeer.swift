import Clients
import EventLoop

/// Who asks over the control socket, by the kernel's word.
struct ControlPeer: Sendable, CustomStringConvertible {
    private let user: UInt32
    private let process: Int32

    init(_ peer: UnixSocket.Peer) {
        user = peer.user
        process = peer.process
    }

    /// `root (user 0, process 4711)`
    var description: String {
        let place = process > 0 ? "user \(user), process \(process)" : "user \(user)"
        return UserName.of(user).map { "\($0) (\(place))" } ?? place
    }
}
