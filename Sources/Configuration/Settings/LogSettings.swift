/// What is logged, and how (`log` in pinproxy.yaml).
package struct LogSettings: Sendable, Equatable {
    package enum Level: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    package enum Format: String, Sendable, CaseIterable {
        /// Fields of the journal if that is where standard error leads, text on a terminal, JSON lines otherwise.
        case auto
        case text
        case json
        case journald
    }

    package var level = Level.info
    package var format = Format.auto
    /// One `exchange` event for each request.
    package var access = true

    package init() {}
}
