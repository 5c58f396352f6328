package import PinproxySecurity

/// The local authority (`authority` in pinproxy.yaml). Its files are created on the first start, not read here.
package struct AuthoritySettings: Sendable, Equatable {
    /// Absolute, or relative to the working directory if the state directory is.
    package var certificatePath: String
    package var privateKeyPath: String
    /// The socket of the process that has the key (`pinproxy signer`); nil: the proxy has it.
    package var signer: String?
    /// How long a minted leaf is valid, the backdate not counted.
    package var leafLifetime: Duration
    /// The names that a new authority may sign for; nil: every host.
    package var permitted: PermittedNames?
}
