/// The client's identity, as far as the request shows it. What the kernel knows is the connection's ``ClientPeer``.
struct ClientIdentity: Sendable {
    /// By a name and a password of `proxy.users`; nil if nobody had to say.
    var user: KnownUser?
    /// By a token: the run of `pinproxy exec` that the client belongs to.
    var run: Run?

    /// Whether a proxy that asks for these users lets the client in.
    func isLetIn(by users: UserVerifier) -> Bool {
        if let run { return run.isLetIn(by: users) }
        return users.knows(user)
    }
}
