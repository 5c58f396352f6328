internal import ArgumentParser

/// The syntax of common shells for the output of `pinproxy env`.
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

    /// Printed if there is nothing to set: a message for the user, and a failing status for the shell.
    var failure: String {
        let text = "pinproxy env failed (its message is above): this shell does not use the proxy"
        return switch self {
        case .sh: "echo '\(text)' >&2; false\n"
        case .fish: "echo '\(text)' >&2; false\n"
        case .csh: "sh -c 'echo \"$0\" >&2; exit 1' '\(text)'\n"
        case .powershell: "Write-Error '\(text)'\n"
        }
    }

    /// One word that the shell doesn't expand.
    func quoted(_ value: String) -> String {
        switch self {
        case .sh: "'" + value.replacing("'", with: "'\\''") + "'"
        case .fish: "'" + value.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
        // Even between quotes csh expands an exclamation mark from its history, and ends the command at a newline.
        case .csh:
            "'" + value.replacing("'", with: "'\\''").replacing("!", with: "\\!").replacing("\n", with: "\\\n") + "'"
        case .powershell: "'" + value.replacing("'", with: "''") + "'"
        }
    }
}
