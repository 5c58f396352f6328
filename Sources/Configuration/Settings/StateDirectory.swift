/// The daemon's directory for its files: the authority, the combined trust bundle, the process ID.
package enum StateDirectory {
    /// `$STATE_DIRECTORY` (of several, the first), else `$XDG_STATE_HOME/pinproxy`, else `~/.local/state/pinproxy`; nil
    /// without a home directory. Relative values are ignored, as the XDG specification asks.
    package static func path(environment: [String: String]) -> String? {
        let ofUnit = environment["STATE_DIRECTORY"]?.split(separator: ":").first
        if let ofUnit, ofUnit.hasPrefix("/") { return String(ofUnit) }
        if let base = environment["XDG_STATE_HOME"], base.hasPrefix("/") { return base + "/pinproxy" }
        if let home = environment["HOME"], home.hasPrefix("/") { return home + "/.local/state/pinproxy" }
        return nil
    }
}
