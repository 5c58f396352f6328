import Foundation

/// A JVM with its own copy of the trust store: the machine's stays unchanged.
struct JVMCopy {
    private static let keytool = "/usr/bin/keytool"
    static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: keytool) }

    private let bed: TestBed
    private var store: String { bed.path("jvm/cacerts") }

    /// - Parameter certificate: the file of one that is already in the store.
    init(_ bed: TestBed, trusting certificate: String) async throws {
        self.bed = bed
        try FileManager.default.createDirectory(atPath: bed.path("jvm/bin"), withIntermediateDirectories: true)
        try bed.file(
            "jvm/bin/keytool",
            """
            #!/bin/bash
            arguments=()
            for argument; do
                if [ "$argument" = -cacerts ]; then arguments+=(-keystore '\(store)'); else arguments+=("$argument"); fi
            done
            exec \(Self.keytool) "${arguments[@]}"
            """, mode: 0o755)
        let made = try await keytool("-importcert", "-noprompt", "-alias", "other", "-file", certificate)
        guard made.succeeded else { throw Failure(description: "\(made)") }
    }

    /// For the commands of this program.
    var environment: [String: String] {
        ProxyProcess.environment(in: bed).merging(["JAVA_HOME": bed.path("jvm")]) { $1 }
    }

    /// The names of the authorities of this program that it trusts.
    func authorities() async throws -> [String] {
        try await keytool("-list").output.matches(of: /pinproxy-[0-9a-f]{12}/).map { String($0.output) }.sorted()
    }

    private func keytool(_ arguments: String...) async throws -> Run {
        try await bed.run([Self.keytool] + arguments + ["-keystore", store, "-storepass", "changeit"])
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }
}
