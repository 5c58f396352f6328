internal import FoundationEssentials
internal import Glibc

/// A new directory of this user alone, removed with everything in it when this is.
final class ScratchDirectory {
    let path: String

    /// - Parameter purpose: part of its name.
    init(for purpose: String) throws {
        let parent = StartEnvironment.variables["TMPDIR"] ?? "/tmp"
        var template = Array("\(parent)/pinproxy-\(purpose).XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandFailure("no directory can be made in \(parent): \(systemReason())")
        }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { remove() }

    /// Removes it now.
    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
