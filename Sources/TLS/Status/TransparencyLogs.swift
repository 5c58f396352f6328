import CPinproxyOpenSSL
import Glibc

/// The Certificate Transparency logs (RFC 6962) with accepted timestamps, from a file in OpenSSL's format:
///
///     enabled_logs = argon, xenon
///     [argon]
///     description = Example 'Argon' log
///     key = MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…
package final class TransparencyLogs: @unchecked Sendable {
    // A CTLOG_STORE, not changed after it is loaded.
    let pointer: OpaquePointer

    /// Digest of the logs' names and keys.
    package let digest: SHA256Digest

    private init(owning pointer: OpaquePointer, digest: SHA256Digest) {
        self.pointer = pointer
        self.digest = digest
    }

    deinit { CTLOG_STORE_free(pointer) }

    /// Bytes of a file; browsers' lists have 50 KiB for a hundred logs.
    static let sizeLimit = 1 << 20

    package static func load(_ path: String) throws(TransparencyLogsError) -> TransparencyLogs {
        // Read for its errors: OpenSSL opens the path itself.
        do { _ = try SmallFile.read(path, limit: sizeLimit) } catch { throw .unreadable(path: path, error) }
        // OpenSSL doesn't say what is wrong in a list, so each log is parsed here first.
        let logs = try TransparencyLogFile(path).logs()
        OpenSSLErrorQueue.clear()
        guard let store = CTLOG_STORE_new() else { throw .broken(path: path, reason: "out of memory") }
        guard CTLOG_STORE_load_file(store, path) == 1 else {
            CTLOG_STORE_free(store)
            throw .broken(path: path, reason: OpenSSLErrorQueue.takeReason())
        }
        let text = logs.map { "\($0.name)\n\($0.key)\n" }.sorted().joined()
        return TransparencyLogs(owning: store, digest: SHA256Digest.of(Array(text.utf8)))
    }

    /// The log's name, if listed.
    func name(ofLog id: [UInt8]) -> String? {
        guard let log = CTLOG_STORE_get0_log_by_id(pointer, id, id.count), let name = CTLOG_get0_name(log) else {
            return nil
        }
        return String(cString: name)
    }
}

package enum TransparencyLogsError: Error, Sendable, Hashable, CustomStringConvertible {
    case unreadable(path: String, FileProblem)
    /// Broken syntax; the line is 0 if unknown.
    case syntax(path: String, line: Int, reason: String)
    case broken(path: String, reason: String)
    /// One of the logs that the file enables.
    case log(path: String, name: String, reason: String)

    package var description: String {
        switch self {
        case .unreadable(let path, let problem): "\(path): \(problem)"
        case .syntax(let path, let line, let reason): "\(path)\(line > 0 ? ":\(line)" : ""): \(reason)"
        case .broken(let path, let reason): "\(path): \(reason)"
        case .log(let path, let name, let reason): "\(path): log \(name): \(reason)"
        }
    }
}

/// A file in OpenSSL's configuration language that lists logs.
private final class TransparencyLogFile {
    private let path: String
    private let configuration: UnsafeMutablePointer<CONF>

    init(_ path: String) throws(TransparencyLogsError) {
        OpenSSLErrorQueue.clear()
        guard let configuration = NCONF_new(nil) else { throw .broken(path: path, reason: "out of memory") }
        // deinit frees it, even if an error is thrown below.
        self.path = path
        self.configuration = configuration
        var line = 0
        guard NCONF_load(configuration, path, &line) == 1 else {
            throw .syntax(path: path, line: max(line, 0), reason: OpenSSLErrorQueue.takeReason())
        }
    }

    deinit { NCONF_free(configuration) }

    func logs() throws(TransparencyLogsError) -> [(name: String, key: String)] {
        let names = (text("enabled_logs", in: nil) ?? "").split(separator: ",").map { $0.trimming() }
        guard !names.isEmpty else { throw .broken(path: path, reason: "it enables no log (enabled_logs = NAME, …)") }
        var logs: [(name: String, key: String)] = []
        for name in names {
            guard !name.isEmpty else { throw .broken(path: path, reason: "enabled_logs has an empty name in it") }
            guard let description = text("description", in: name) else {
                throw .log(path: path, name: name, reason: "there is no section [\(name)] with a description")
            }
            guard let key = text("key", in: name) else { throw .log(path: path, name: name, reason: "it has no key") }
            guard let der = Base64.decode(key.utf8) else {
                throw .log(path: path, name: name, reason: "its key is not base64")
            }
            do { _ = try PublicKey(der: der) } catch {
                throw .log(path: path, name: name, reason: "its key is \(error)")
            }
            logs.append((description, key))
        }
        return logs
    }

    private func text(_ name: String, in section: String?) -> String? {
        // A missing value leaves an error behind.
        defer { OpenSSLErrorQueue.clear() }
        return NCONF_get_string(configuration, section, name).map { String(cString: $0) }
    }
}

extension Substring {
    fileprivate func trimming() -> String {
        let start = drop { $0.isWhitespace }
        let count = start.reversed().drop { $0.isWhitespace }.count
        return String(start.prefix(count))
    }
}
