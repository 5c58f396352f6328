import Glibc

/// Certificate revocation lists (RFC 5280 section 5) from disk. Immutable; one set serves all threads.
///
/// A certificate is judged by its issuer's list (``RevocationCheck``); issuers without a list aren't checked.
package final class RevocationLists: Sendable {
    let lists: [RevocationList]
    package let paths: [String]
    /// Digest of the set, whatever its order: sets with the same digest revoke the same certificates.
    package let digest: SHA256Digest

    package var isEmpty: Bool { lists.isEmpty }

    init(_ lists: [RevocationList], paths: [String] = []) {
        self.paths = paths
        self.lists = lists
        let digests = Set(lists.map(\.digest)).map(\.bytes)
        digest = SHA256Digest.of(digests.sorted { $0.lexicographicallyPrecedes($1) }.flatMap(\.self))
    }

    /// Bytes of all files. A list is hashed once for each key that may have signed it, at half a ms a megabyte or more.
    static let sizeLimit = 16 << 20

    /// The lists of files, PEM (`X509 CRL`) or DER. An unreadable, broken or empty file is an error.
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

    /// Whose each list is and how long it is good, in the order of the files.
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
