/// The client's identity by its request. ``ClientPeer`` is what the kernel knows.
struct ClientIdentity: Sendable {
    /// By name and password of `proxy.users`; nil if none were needed.
    var user: KnownUser?
    /// By a token: the run of `pinproxy exec` that the client belongs to.
    var run: Run?

    /// Whether a proxy with these users admits the client.
    func isLetIn(by users: UserVerifier) -> Bool {
        if let run { return run.isLetIn(by: users) }
        return users.knows(user)
    }
}
