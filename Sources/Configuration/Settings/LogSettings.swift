/// The level and format of the log (`log` in pinproxy.yaml).
package struct LogSettings: Sendable, Equatable {
    package enum Level: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical

        /// Itself, or the other where that lets less through.
        func atLeast(_ other: Level) -> Level {
            let order = Self.allCases
            guard let own = order.firstIndex(of: self), let least = order.firstIndex(of: other) else { return other }
            return order[max(own, least)]
        }
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
    package var access = true

    package init() {}
}
