internal import ArgumentParser

/// How the shells that people use write what `pinproxy env` prints.
enum ShellSyntax: String, ExpressibleByArgument, CaseIterable {
    case sh, fish, csh, powershell

    func set(_ name: String, _ value: String) -> String {
        switch self {
        case .sh: "export \(name)=\(quoted(value))\n"
        case .fish: "set -gx \(name) \(quoted(value));\n"
        case .csh: "setenv \(name) \(quoted(value));\n"
        case .powershell: "$env:\(name) = \(quoted(value))\n"
        }
    }

    func unset(_ name: String) -> String {
        switch self {
        case .sh: "unset \(name)\n"
        case .fish: "set -e \(name);\n"
        case .csh: "unsetenv \(name);\n"
        case .powershell: "Remove-Item Env:\(name) -ErrorAction Ignore\n"
        }
    }

    /// What is printed where there is nothing to set: for a person who reads it, and for the shell, whose status says
    /// it too.
    var failure: String {
        let text = "pinproxy env failed (its message is above): this shell does not use the proxy"
        return switch self {
        case .sh: "echo '\(text)' >&2; false\n"
        case .fish: "echo '\(text)' >&2; false\n"
        case .csh: "sh -c 'echo \"$0\" >&2; exit 1' '\(text)'\n"
        case .powershell: "Write-Error '\(text)'\n"
        }
    }

    /// One word that the shell leaves as it is.
    func quoted(_ value: String) -> String {
        switch self {
        case .sh: "'" + value.replacing("'", with: "'\\''") + "'"
        case .fish: "'" + value.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
        // Even between quotes it takes what follows an exclamation mark from its history, and a line's end for the
        // command's.
        case .csh:
            "'" + value.replacing("'", with: "'\\''").replacing("!", with: "\\!").replacing("\n", with: "\\\n") + "'"
        case .powershell: "'" + value.replacing("'", with: "''") + "'"
        }
    }
}
