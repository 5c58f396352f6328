internal import Glibc

/// What a command has to itself: a network, the system's trust stores as it sees them, or both.
package struct CommandSurroundings: Sendable {
    package var network: IsolatedNetwork?
    package var trust: SystemTrust?
    /// What is mapped in its namespace of users besides its user, where it gets one.
    package var subordinates: SubordinateIDs?
    /// A command that can have them only in a namespace of users goes without, if it is root's.
    package var keepsRights = false

    package init() {}

    package var isEmpty: Bool { network == nil && trust == nil }

    /// What a process has entered.
    package struct Entered: Sendable {
        /// They listen in the network, close-on-exec, for the ``Door``. The caller owns them.
        package var sockets: [CInt] = []
        /// Why the trust stores are as they were, besides the network; nil: they aren't.
        package var untrusted: String?

        package init(sockets: [CInt] = [], untrusted: String? = nil) {
            (self.sockets, self.untrusted) = (sockets, untrusted)
        }
    }

    /// Moves this process, which must have only one thread.
    /// - Parameter map: has a process outside call ``SubordinateIDs/map(into:)`` with this one, and returns what that
    ///   returns. Called at most once, if there are ``subordinates``.
    /// - Throws: where there is no network, or nothing at all. The process is of no use then.
    package func enter(mapping map: @escaping () throws(IsolationError) -> UInt8) throws(IsolationError) -> Entered {
        guard subordinates != nil else { return try enter(nil) }
        return try enter { () throws(IsolationError) in SubordinateIDs.Mapped(rawValue: try map()) }
    }

    private func enter(_ map: Namespaces.Mapping?) throws(IsolationError) -> Entered {
        guard let network else {
            try Namespaces.enterMounts(keepsRights: keepsRights, map)
            try trust?.cover()
            return Entered()
        }
        try Namespaces.enterNetwork(mounts: trust != nil, map)
        var entered = Entered(sockets: try network.open())
        do throws(IsolationError) { try trust?.cover() } catch { entered.untrusted = error.description }
        return entered
    }
}
