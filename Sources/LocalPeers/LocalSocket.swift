// LocalPeers: the user and processes at the other end of a local connection, by the kernel's data.

package struct LocalSocket: Sendable, Hashable {
    /// The effective user of the process that made it (TCP) or connected it (Unix).
    package let user: UInt32
    /// The number in `/proc/PID/fd` (`socket:[…]`). Nil: unknown.
    package let inode: UInt64?

    package init(user: UInt32, inode: UInt64?) {
        self.user = user
        self.inode = inode
    }
}

package struct LocalProcess: Sendable, Hashable {
    package let id: Int32
    /// In clock ticks since boot: distinguishes processes with the same ``id``.
    package let started: UInt64
    /// The program's file. Nil: unknown, or another file in this process's file system (containers, replaced programs).
    package let executable: String?
    /// The system manager's unit, e.g. `ci.service`. Nil: unknown, or none.
    package let unit: String?

    package init(id: Int32, started: UInt64, executable: String?, unit: String?) {
        self.id = id
        self.started = started
        self.executable = executable
        self.unit = unit
    }
}
