internal import PinproxySecurity
package import PinproxyTLS

/// The files of a configuration that decide what is let through, with what they contain (``FileSources``).
package struct ConfigurationFiles: Sendable, Equatable {
    /// As absolute paths; pinproxy.yaml is the first.
    package var contents: [File]

    package struct File: Sendable, Equatable {
        package let path: String
        package let bytes: [UInt8]

        package init(path: String, bytes: [UInt8]) {
            self.path = path
            self.bytes = bytes
        }
    }

    package init(contents: [File]) { self.contents = contents }

    /// Whether it is the configuration that this pinproxy.yaml began.
    package func belong(to file: String) -> Bool { contents.first?.path == FileStamp.absolute(file) }
}

/// Why there is no copy of a configuration.
package enum ConfigurationFilesProblem: Error, CustomStringConvertible {
    /// A file is not what it was when the configuration was read.
    case changed(path: String)
    case unreadable(path: String, FileProblem)
    case tooLarge(limit: Int)
    case tooMany(limit: Int)

    package var description: String {
        switch self {
        case .changed(let path): "\(path) has changed since it was read"
        case .unreadable(let path, let problem): "\(path): \(problem)"
        case .tooLarge(let limit): "its files are longer than \(limit >> 20) MiB together"
        case .tooMany(let limit): "it has more than \(limit) files"
        }
    }
}
