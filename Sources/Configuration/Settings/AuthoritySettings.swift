/// The local authority (`authority` in pinproxy.yaml). The files are not read with the
/// configuration: they are created on the first start.
package struct AuthoritySettings: Sendable, Equatable {
    /// Absolute, or relative to the working directory if the state directory is.
    package var certificatePath: String
    package var privateKeyPath: String
    /// How long a minted leaf is valid, the backdate not counted.
    package var leafLifetime: Duration
}
