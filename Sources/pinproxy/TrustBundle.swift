internal import FoundationEssentials
internal import Security
internal import TLS

/// One file with the system's roots and the proxy's authority, for programs that trust either the
/// one or the other.
struct TrustBundle {
    /// Makes sure that the file is there and up to date, and says where it is.
    /// - Parameters:
    ///   - authority: the path of the authority's certificate.
    ///   - directories: where it may be kept; the first that can be written.
    static func prepare(authority: String, in directories: [StateFiles]) throws -> String {
        let own: [UInt8]
        do {
            own = [UInt8](try Data(contentsOf: URL(fileURLWithPath: authority)))
        } catch {
            throw CommandFailure(
                "the proxy's authority \(authority) can't be read; "
                    + "pinproxy run makes it on its first start, pinproxy ca create at once")
        }
        let contents = combine(systemRoots(), own)
        var problems: [String] = []
        for directory in directories {
            let path = directory.trustBundle
            if let present = try? Data(contentsOf: URL(fileURLWithPath: path)), present.elementsEqual(contents) {
                return path
            }
            do {
                try directory.create()
                try NewFile.write(contents, to: path, mode: 0o644)
                return path
            } catch {
                problems.append((error as? CommandFailure)?.message ?? "\(error)")
            }
        }
        throw CommandFailure(
            "the trust bundle can't be written: \(problems.joined(separator: "; "))")
    }

    private static func systemRoots() -> [UInt8] {
        for path in TrustAnchors.systemBundles {
            if let data = try? Data(contentsOf: URL(fileURLWithPath: path)) { return [UInt8](data) }
        }
        return []
    }

    private static func combine(_ roots: [UInt8], _ own: [UInt8]) -> [UInt8] {
        var contents = roots
        if let last = contents.last, last != UInt8(ascii: "\n") { contents.append(UInt8(ascii: "\n")) }
        return contents + own
    }
}
