import FoundationEssentials
import Glibc
import Security

/// A JSON file in the state directory: written by the running proxy, or by a command for it, and read
/// by the others. A reader sees it whole, the old one or the new one.
package struct StateFile<Value: Codable & Sendable>: Sendable {
    package var path: String { "\(directory.path)/\(name)" }
    private let directory: TrustedDirectory
    private let name: String
    /// Some times what the longest, the chains of ``ChainHistory/maximumHosts`` hosts, may come to.
    private static var limit: Int { 256 << 20 }

    /// Permission bits, less what the umask takes.
    private let mode: UInt32

    package init(_ name: String, in directory: String, mode: UInt32 = 0o644) {
        self.directory = TrustedDirectory(directory)
        self.name = name
        self.mode = mode
    }

    /// Nil if there is no such file.
    package func read() throws(StateFileProblem) -> Value? {
        let bytes: [UInt8]
        do throws(FileProblem) {
            bytes = try directory.read(name, limit: Self.limit).bytes
        } catch .system(ENOENT) {
            return nil
        } catch {
            throw StateFileProblem(path: path, isBroken: error.isOfContents, cause: "it can't be read: \(error)")
        }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(bytes))
        } catch {
            throw StateFileProblem(path: path, isBroken: true, cause: "it is not in the form that this version writes: \(error)")
        }
    }

    package func write(_ value: Value) throws(StateFileProblem) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            try directory.write([UInt8](try encoder.encode(value)), to: name, mode: mode)
        } catch {
            throw StateFileProblem(path: path, isBroken: false, cause: "it can't be written: \(error)")
        }
    }

    /// Keeps a broken file for whoever wants to look at it, out of the way. The new path; nil if that fails.
    func moveAside() -> String? {
        let aside = name + ".broken"
        return directory.rename(name, to: aside) ? "\(directory.path)/\(aside)" : nil
    }
}

/// Why a file of the state directory couldn't be read or written.
package struct StateFileProblem: Error, Sendable, CustomStringConvertible {
    package let path: String
    /// It was read, and makes no sense.
    package let isBroken: Bool
    package let cause: String

    package var description: String { "\(path): \(cause)" }
}
