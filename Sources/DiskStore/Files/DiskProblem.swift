internal import CPinproxySQLite
import Glibc

/// The disk, the file system or the index refused.
package enum DiskProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// A system call failed with this `errno`, e.g. `open`.
    case system(String, Int32)
    /// SQLite failed, with its result code; `system`: the `errno` of its last system call.
    case index(code: Int32, system: Int32, String)

    package var description: String {
        switch self {
        case .system(let call, let code): "\(call): \(String(cString: strerror(code)))"
        case .index(let code, let system, let message):
            if code & 0xFF == SQLITE_IOERR, system != 0 {
                "index: \(message): \(String(cString: strerror(system)))"
            } else {
                "index: \(message)"
            }
        }
    }

    /// Whether the index is damaged. Other problems may be temporary.
    var isDamage: Bool {
        guard case .index(let code, _, _) = self else { return false }
        // ERROR: a column or a table of the prepared statements is missing. CONSTRAINT: a number is taken.
        // READONLY: the header asks for a later version of SQLite.
        return [
            SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR, SQLITE_MISMATCH, SQLITE_TOOBIG,
            SQLITE_CONSTRAINT, SQLITE_READONLY,
        ].contains(code & 0xFF)
    }

    var isInUse: Bool {
        guard case .index(let code, _, _) = self else { return false }
        return code & 0xFF == SQLITE_BUSY
    }
}
