/// Who asks, as far as the client has shown it. Whatever decides by who a client is decides by this.
struct ClientIdentity: Sendable {
    /// By a name and a password of `proxy.users`; nil if nobody had to say.
    var user: KnownUser?
    /// By a token: the run of `pinproxy exec` that the client belongs to.
    var run: Run?
    /// By the kernel: who is at the other end of the connection.
    var peer = ClientPeer(nil)

    /// Whether a proxy that asks for these users lets the client in.
    func isLetIn(by users: UserVerifier) -> Bool {
        if let run { return run.isLetIn(by: users) }
        return users.knows(user)
    }
}
