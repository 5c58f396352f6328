package import TLS

/// What must be equal for an upstream connection, or a TLS session, to be used for another exchange.
///
/// The verdict on a chain belongs to the connection (architecture rule 2): ``generation`` stands for
/// everything that the verdict came from, so that a connection that passed under one policy is never
/// found under another.
package struct OriginKey: Sendable, Hashable {
    /// Canonical: lower-case, no trailing dot, no brackets.
    package let host: String
    package let port: UInt16
    /// The digest of policy, anchors and TLS settings; nil for plain HTTP.
    package let generation: SHA256Digest?
    package let parent: ParentProxy?

    package init(host: String, port: UInt16, generation: SHA256Digest?, parent: ParentProxy?) {
        self.host = host
        self.port = port
        self.generation = generation
        self.parent = parent
    }
}
