/// Something wrong, or worth a warning, in a file of the configuration.
package struct Problem: Sendable, Hashable, CustomStringConvertible {
    package enum Severity: String, Sendable {
        /// The configuration can't be used.
        case error
        /// It can be used, but should be known.
        case warning
    }

    package var severity: Severity
    package var place: Place
    /// One human-readable line, without the place.
    package var message: String

    package init(_ severity: Severity, at place: Place, _ message: String) {
        self.severity = severity
        self.place = place
        self.message = message
    }

    /// `FILE:LINE:COLUMN: error: …`, the shape that editors and compilers share.
    package var description: String { "\(place): \(severity.rawValue): \(message)" }
}

/// A place in a file. Lines and columns (Unicode scalars) count from 1; nil: the whole file.
package struct Place: Sendable, Hashable, CustomStringConvertible {
    /// The path as requested, so that people recognise it.
    package var file: String
    package var line: Int?
    package var column: Int?

    package init(file: String, line: Int? = nil, column: Int? = nil) {
        self.file = file
        self.line = line
        self.column = column
    }

    package var description: String {
        switch (line, column) {
        case (let line?, let column?): "\(file):\(line):\(column)"
        case (let line?, nil): "\(file):\(line)"
        default: file
        }
    }
}

/// Why there is no snapshot: every problem, warnings included, in the order of the files; at least one error.
package struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
    package var problems: [Problem]

    package init(_ problems: [Problem]) {
        self.problems = problems
    }

    package var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Why a value is invalid, in human-readable form.
struct Reason: Error, Equatable {
    let text: String

    init(_ text: String) {
        self.text = text
    }
}
