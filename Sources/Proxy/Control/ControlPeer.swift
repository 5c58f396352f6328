import EventLoop
import Glibc

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
        return name.map { "\($0) (\(place))" } ?? place
    }

    /// As the user database has it.
    private var name: String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { room in
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard let base = room.baseAddress, getpwuid_r(user, &entry, base, room.count, &found) == 0 else { return nil }
            guard let name = found?.pointee.pw_name else { return nil }
            return String(cString: name)
        }
    }
}
