package import Configuration
import Security
import Session
package import TLS

/// What `check` and `lint` say about the local authority of a configuration.
package enum AuthorityRemarks {
    /// None where there is no authority yet, or where its certificate is not for the asking user to read.
    package static func problems(in snapshot: Snapshot, at time: UnixTime) -> [Problem] {
        let path = snapshot.authority.certificatePath
        guard let file = try? SmallFile.read(path) else { return [] }
        let place = Place(file: path)
        do {
            let certificates = try Certificate.all(inPEM: file.bytes)
            guard let own = certificates.first else { return [] }
            let known = Array(certificates.dropFirst()) + snapshot.upstream.anchors.certificates
            return AuthorityReview(own, issuers: known, at: time).remarks(hosts: hosts(of: snapshot)).map {
                Problem(.warning, at: place, $0)
            }
        } catch {
            return [Problem(.warning, at: place, "the local authority can't be read: \(error)")]
        }
    }

    private static func hosts(of snapshot: Snapshot) -> [ServerName] {
        snapshot.hosts.entries.compactMap { entry in
            guard entry.value.action == .intercept, entry.pattern.scope == .exact else { return nil }
            return ServerName(host: entry.pattern.name)
        }
    }
}
