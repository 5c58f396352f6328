import Foundation
import PinproxyTestAuthority

@testable import PinproxyConfiguration

/// A directory of configuration files that is deleted after the test.
final class ConfigurationBed {
    let directory: String

    init(_ files: [String: String] = [:]) throws {
        directory =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("pinproxy-configuration-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        for (name, text) in files { try write(name, Array(text.utf8)) }
    }

    private static let authority = Result { try HeldCertificate.root() }

    /// A pin file in its own directory, with certificates beside it.
    convenience init(pins: String, _ more: [String: String] = [:]) throws {
        let pem = try Self.authority.get().pem
        var files = [
            "pinproxy.yaml": "upstream: {trust: ca.pem}\npins: pins/hosts.yaml\n", "ca.pem": pem,
            "pins/hosts.yaml": pins, "pins/certs/ca.pem": pem, "pins/certs/empty.pem": "",
        ]
        files.merge(more) { $1 }
        try self.init(files)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    func path(_ name: String) -> String { directory + "/" + name }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        let url = URL(fileURLWithPath: path(name))
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: url)
    }

    func load() throws(ConfigurationProblems) -> Snapshot {
        try Snapshot.load(path("pinproxy.yaml"), stateDirectory: path("state"))
    }

    /// The problems of a load, one a line, without the directory. Warnings of a successful load are problems too.
    func problems() -> [String] {
        let problems: [Problem]
        do { problems = try load().warnings } catch { problems = error.problems }
        return problems.map { $0.description.replacingOccurrences(of: directory + "/", with: "") }
    }
}
