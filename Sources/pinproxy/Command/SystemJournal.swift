internal import CPinproxySystemd
internal import Glibc
internal import PinproxyRecords

/// The journal of systemd (journald): fields by sd_journal_sendv(3).
enum SystemJournal {
    /// Whether standard error is connected to it (JOURNAL_STREAM of systemd.exec(5)).
    static var isStandardError: Bool {
        var status = stat()
        guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else { return false }
        return String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
    }

    /// Gives it one record; nil where there is no journal, or no libsystemd.
    static var send: LogOutput.Journal? {
        guard access("/run/systemd/journal/socket", W_OK) == 0, let library = SystemdLibrary.functions else {
            return nil
        }
        return { record, fields in
            record.withUnsafeBytes { bytes in
                let start = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                let pieces = fields.map { iovec(iov_base: start?.advanced(by: $0.lowerBound), iov_len: $0.count) }
                return library.journalSendv(pieces, CInt(pieces.count)) == 0
            }
        }
    }
}
