internal import CShims
internal import Foundation

/// What the running proxy says of the times that it has read its files, for `pinproxy reload` and `pinproxy status`.
///
/// It stands in memory of the proxy's own (``ReloadStatusMemory``), as JSON: a part of it is no JSON, so that who reads
/// while it is written takes nothing from it.
struct ReloadStatus: Codable, Equatable {
    static let fileName = "pinproxy-reload"

    enum Outcome: Codable, Equatable {
        case accepted
        /// The old configuration is still in force. One problem a line.
        case refused(String)
    }

    let process: pid_t
    /// The file that it reads, as an absolute path.
    let configuration: String
    /// Reloads that have begun, and those of them that are over.
    private(set) var begun = 0
    private(set) var ended = 0
    /// Of the last that is over.
    private(set) var outcome: Outcome?

    init(process: pid_t, configuration: String) {
        self.process = process
        self.configuration = configuration
    }

    init?(_ json: Data) {
        guard let status = try? JSONDecoder().decode(ReloadStatus.self, from: json) else { return nil }
        self = status
    }

    var json: Data { (try? JSONEncoder().encode(self)) ?? Data() }

    mutating func begin() { begun += 1 }

    mutating func end(_ outcome: Outcome) {
        // One that is refused at once has not begun.
        if begun == ended { begun += 1 }
        ended = begun
        self.outcome = outcome
    }

    /// The outcome of a reload that began after `earlier` was read, if one is over. One that was under way then may
    /// have read the files as they were before.
    func outcome(after earlier: ReloadStatus) -> Outcome? {
        ended > earlier.begun ? outcome : nil
    }
}

/// A file that is in no directory (memfd_create(2)): it can always be written, ends with its process, and is never
/// taken for another's. Others find it among the descriptors of the process.
final class ReloadStatusMemory {
    private let descriptor: Int32

    /// nil if the system refuses it; `errno` says why.
    init?() {
        descriptor = memfd_create(ReloadStatus.fileName, shim_MFD_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    func write(_ status: ReloadStatus) {
        let bytes = [UInt8](status.json)
        ftruncate(descriptor, 0)
        pwrite(descriptor, bytes, bytes.count, 0)
    }
}
