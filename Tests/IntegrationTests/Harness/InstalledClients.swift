import Foundation
import Testing

@testable import pinproxy

/// The programs of ``ClientProgram`` as a test finds them: a few that `make test` installs, or with
/// `PINPROXY_TEST_CLIENTS=all` (`make test-clients`) every one.
enum InstalledClients {
    static let areAll = ProcessInfo.processInfo.environment["PINPROXY_TEST_CLIENTS"] == "all"

    private static let quick: Set = [
        "curl", "wget", "git", "apt", "openssl", "python3: urllib", "python3: http.client", "nodejs", "perl: LWP",
        "perl: HTTP::Tiny",
    ]
    /// Programs that no package has in the required version.
    static let unobtainable: Set = ["cargo"]

    static let programs = areAll ? ClientProgram.all : ClientProgram.all.filter { quick.contains($0.name) }

    /// Programs from PyPI have a separate folder.
    static func environment(in bed: TestBed) -> [String: String] {
        let home = ProcessInfo.processInfo.environment["HOME"] ?? "/root"
        let packages = "\(Documentation.repository)/.build/clients/bin"
        let path = [areAll ? packages : nil, bed.environment["PATH"], areAll ? "\(home)/.cargo/bin" : nil].compactMap(
            \.self)
        // Debian's yarn finds its modules there, whatever node is first in PATH.
        return [
            "PATH": path.joined(separator: ":"), "RUSTUP_HOME": "\(home)/.rustup", "NODE_PATH": "/usr/share/nodejs",
        ]
    }
}

extension ClientProgram: CustomTestStringConvertible {
    var testDescription: String { name }
}
