internal import Glibc

/// What standard output is connected to.
enum Terminal {
    static var isInteractive: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Makes an empty screen of it.
    static let cleared = "\u{1B}[H\u{1B}[2J"

    /// Columns; without a terminal so many that nothing is cut.
    static var width: Int { size?.columns ?? .max }
    /// Lines; without a terminal so many that nothing is left out.
    static var height: Int { size?.rows ?? .max }

    private static var size: (rows: Int, columns: Int)? {
        // struct winsize of ioctl_tty(2), which Swift has in no module of its own: rows, columns, and the same in pixels.
        var size = [UInt16](repeating: 0, count: 4)
        guard isInteractive, ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size[0] > 0, size[1] > 0 else { return nil }
        return (Int(size[0]), Int(size[1]))
    }
}
