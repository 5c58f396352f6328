/// Names that the proxy answers itself, for `pinproxy doctor`. No entry can have them; names below them are free.
package enum TestHost: String, Sendable, CaseIterable {
    /// Its pin is right.
    case right = "pinproxy.test"
    /// Its pin is wrong.
    case wrong = "wrong.pinproxy.test"

    /// - Parameter host: canonical.
    package init?(_ host: String) {
        // Asked for every request: most names have another length.
        guard host.utf8.count == 13 || host.utf8.count == 19 else { return nil }
        self.init(rawValue: host)
    }
}
