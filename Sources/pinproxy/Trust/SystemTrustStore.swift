internal import FoundationEssentials
internal import Glibc
internal import Security
internal import TLS

/// The machine's trust store, as Debian's ca-certificates keeps it: files in a directory, from which
/// `update-ca-certificates` makes the bundle that programs read.
struct SystemTrustStore {
    var directory = "/usr/local/share/ca-certificates"
    var command = ["/usr/sbin/update-ca-certificates"]

    /// The file of one authority. Its name tells authorities apart, so that a new one doesn't
    /// silently take the place of another that is still in use.
    func path(for certificate: Certificate) -> String {
        "\(directory)/pinproxy-\(certificate.sha256.hex.prefix(12)).crt"
    }

    /// All files of authorities of this program.
    func installed() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.hasPrefix("pinproxy-") && $0.hasSuffix(".crt") }.sorted().map { "\(directory)/\($0)" }
    }

    /// - Returns: false if it was there already. The bundle is made anew in either case.
    func install(_ certificate: Certificate) throws -> Bool {
        let path = path(for: certificate)
        let bytes = Array(certificate.pem.utf8)
        let isThere = FileManager.default.contents(atPath: path)?.elementsEqual(bytes) == true
        if !isThere {
            guard access(directory, F_OK) == 0 else {
                throw CommandFailure("\(directory) doesn't exist: install the package ca-certificates")
            }
            do throws(FileProblem) {
                try NewFile.write(bytes, to: path, mode: 0o644)
            } catch {
                guard case .system(let reason) = error else { throw CommandFailure("\(path): \(error)") }
                throw failure(path, reason)
            }
        }
        try update()
        return !isThere
    }

    func remove(_ paths: [String]) throws {
        for path in paths {
            guard unlink(path) == 0 || errno == ENOENT else { throw failure(path, errno) }
        }
        // Without it the links to what is gone stay in the system's directory.
        try update("--fresh")
    }

    private func failure(_ path: String, _ reason: CInt) -> CommandFailure {
        let hint = reason == EACCES || reason == EPERM ? "; this needs root: run it with sudo" : ""
        return CommandFailure("\(path): \(systemReason(reason))\(hint)")
    }

    private func update(_ arguments: String...) throws {
        let all = command + arguments
        let said: [UInt8]
        let isSuccess: Bool
        do {
            (isSuccess, said) = try ChildProcess.run(all)
        } catch {
            throw CommandFailure("\(command[0]) can't be run: install the package ca-certificates")
        }
        guard isSuccess else {
            throw CommandFailure("\(all.joined(separator: " ")) failed:\n\(String(decoding: said, as: UTF8.self))")
        }
    }
}
