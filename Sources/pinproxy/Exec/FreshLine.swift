internal import Glibc

/// Begins a new line on standard error where the command has left an unfinished one.
enum FreshLine {
    static func begin() {
        if let columns = Terminal.columns(of: STDERR_FILENO) { return Standard.error(raw: moveOn(columns)) }
        if endsUnfinished { Standard.error(raw: "\n") }
    }

    /// In the first column this changes nothing; further right it wraps. A terminal can't be asked where its cursor is
    /// without taking what is typed meanwhile.
    static func moveOn(_ columns: Int) -> String { String(repeating: " ", count: max(0, columns - 1)) + "\r" }

    /// Whether a file ends within a line; unknown for a pipe.
    private static var endsUnfinished: Bool {
        var status = stat()
        guard fstat(STDERR_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else {
            return false
        }
        let file = open("/proc/self/fd/\(STDERR_FILENO)", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var last: UInt8 = 0
        return pread(file, &last, 1, status.st_size - 1) == 1 && last != UInt8(ascii: "\n")
    }
}
