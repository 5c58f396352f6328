internal import Glibc

/// The private surroundings of a command: a network, a view of the system's trust stores, or both.
package struct CommandSurroundings: Sendable {
    package var network: IsolatedNetwork?
    package var trust: SystemTrust?
    /// IDs mapped in its user namespace besides its own, if it gets one.
    package var subordinates: SubordinateIDs?
    /// Root's command goes without them if they require a user namespace.
    package var keepsRights = false

    package init() {}

    package var isEmpty: Bool { network == nil && trust == nil }

    /// The surroundings that a process has entered.
    package struct Entered: Sendable {
        /// They listen in the network, close-on-exec, for the ``Door``. The caller owns them.
        package var sockets: [CInt] = []
        /// Why the trust stores couldn't be covered in the network; nil: no failure.
        package var untrusted: String?

        package init(sockets: [CInt] = [], untrusted: String? = nil) {
            (self.sockets, self.untrusted) = (sockets, untrusted)
        }
    }

    /// Moves this process, which must have only one thread.
    /// - Parameter map: has a process outside call ``SubordinateIDs/map(into:)`` with this one, and returns what that
    ///   returns. Called at most once, if there are ``subordinates``.
    /// - Throws: if it can't have the network, or anything at all. The process is then useless.
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
