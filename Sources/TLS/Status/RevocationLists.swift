import Glibc

/// Certificate revocation lists (RFC 5280 section 5) from disk. Immutable, for all threads. Certificates are checked by
/// their issuer's list (``RevocationCheck``), if there is one.
package final class RevocationLists: Sendable {
    let lists: [RevocationList]
    package let paths: [String]
    /// Independent of the order; equal for sets that revoke the same certificates.
    package let digest: SHA256Digest

    package var isEmpty: Bool { lists.isEmpty }

    init(_ lists: [RevocationList], paths: [String] = []) {
        self.paths = paths
        self.lists = lists
        let digests = Set(lists.map(\.digest)).map(\.bytes)
        digest = SHA256Digest.of(digests.sorted { $0.lexicographicallyPrecedes($1) }.flatMap(\.self))
    }

    /// Names files without reading them, to compare policies; it revokes nothing.
    package static func unread(_ paths: [String]) -> RevocationLists { RevocationLists([], paths: paths) }

    /// Bytes of all files. Each possible signer's key costs a hash, half a ms a megabyte or more.
    static let sizeLimit = 16 << 20

    /// Loads PEM (`X509 CRL`) or DER files. An unreadable, broken or empty file is an error.
    package static func load(_ paths: [String]) throws(RevocationListError) -> RevocationLists {
        var lists: [RevocationList] = []
        var left = sizeLimit
        for path in paths {
            let bytes: [UInt8]
            do throws(FileProblem) { bytes = try SmallFile.read(path, limit: left).bytes } catch .tooLarge {
                throw .tooLong(path: path)
            } catch {
                throw .unreadable(path: path, error)
            }
            left -= bytes.count
            do throws(RevocationListFault) { lists += try RevocationList.all(in: bytes, path: path) } catch {
                throw .broken(path: path, reason: error.reason)
            }
        }
        return RevocationLists(lists, paths: paths)
    }

    /// The lists' terms, in the order of the files.
    package var terms: [RevocationListTerm] { lists.map(\.term) }
}

package enum RevocationListError: Error, Sendable, Hashable, CustomStringConvertible {
    case unreadable(path: String, FileProblem)
    case tooLong(path: String)
    case broken(path: String, reason: String)

    package var description: String {
        switch self {
        case .unreadable(let path, let problem): "\(path): \(problem)"
        case .tooLong(let path):
            "\(path): the lists are longer than \(RevocationLists.sizeLimit >> 20) MiB together, which would slow down "
                + "every handshake"
        case .broken(let path, let reason): "\(path): \(reason)"
        }
    }
}
