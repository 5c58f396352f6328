// LocalPeers: who is at the other end of a connection of this machine, by the kernel's word.

/// A client's socket on this machine, as the kernel knows it.
package struct LocalSocket: Sendable, Hashable {
    /// Whose the socket is: the effective user of the process that made it (TCP), or that connected it (Unix).
    package let user: UInt32
    /// What tells it from every other socket: the number that `/proc/PID/fd` shows (`socket:[…]`). Nil: unknown.
    package let inode: UInt64?

    package init(user: UInt32, inode: UInt64?) {
        self.user = user
        self.inode = inode
    }
}

package struct LocalProcess: Sendable, Hashable {
    package let id: Int32
    /// When it started, in clock ticks since the system did: with ``id`` what tells it from a later one of that number.
    package let started: UInt64
    /// The file of its program. Nil: unknown, also where that path is another file in this process's view of the file system:
    /// in a container, or since the program was replaced.
    package let executable: String?
    /// The unit of the system's manager that it belongs to, e.g. `ci.service`. Nil: unknown, or none.
    package let unit: String?

    package init(id: Int32, started: UInt64, executable: String?, unit: String?) {
        self.id = id
        self.started = started
        self.executable = executable
        self.unit = unit
    }
}
