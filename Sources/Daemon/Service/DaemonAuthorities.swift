import Configuration
import Glibc
import Logging
import Records
import Security
import TLS

/// The local authorities in force. They are read at the start, and again at each reload, which takes up a rotation.
extension ProxyDaemon {
    /// Takes the authorities of the start, or makes the first one.
    func loadAuthorities(at time: UnixTime) throws(AuthorityError) -> AuthoritySet {
        let files = snapshot.authorityFiles
        authorityFiles = files
        let (authority, provenance) = try files.loadOrCreate(at: time)
        say(provenance, files)
        return warned(files.withRotation(authority, at: time))
    }

    /// The leaves by the authorities as their files are now: the same cache, if nothing has changed.
    func reloaded(_ leaves: LeafCache) throws(AuthorityError) -> LeafCache {
        guard let files = authorityFiles else { return leaves }
        let now = WallClock.milliseconds() / 1000
        let present = leaves.authorities
        do throws(AuthorityError) {
            // What is unchanged needs no key: it may be readable at the start alone.
            if try files.loadCertificates().first == present.current.certificate {
                let fresh = files.withRotation(present.current, at: now)
                return fresh.certificates == present.certificates ? leaves : leaves.replacing(warned(fresh))
            }
            return leaves.replacing(warned(files.withRotation(try files.load(at: now), at: now)))
        } catch .unreadable(let path, .system(ENOENT)) where path == files.certificate {
            logger.warning(
                "authority.failed",
                metadata: ["cause": "\(path) is gone", "effect": "the authority read before signs until the proxy stops"])
            return leaves
        }
    }

    /// Says what has changed, once it is in force.
    func takeOver(_ fresh: LeafCache) {
        defer { leaves = fresh }
        guard let before = leaves?.authorities, leaves !== fresh else { return }
        let (now, after) = (WallClock.milliseconds() / 1000, fresh.authorities)
        logger.notice(
            "authority.changed",
            metadata: [
                "signs": "\(after.signer(at: now).certificate.subject)",
                "before": "\(before.signer(at: now).certificate.subject)",
                "next": "\(after.next?.certificate.subject ?? "")",
                "previous": "\(after.previous.map(\.subject).joined(separator: ", "))",
            ])
    }

    private func warned(_ authorities: AuthoritySet) -> AuthoritySet {
        for problem in authorities.problems {
            logger.warning(
                "authority.failed",
                metadata: ["cause": "\(problem)", "effect": "the rotation can't go on; the present authority signs"])
        }
        return authorities
    }

    private func say(_ provenance: AuthorityFiles.Provenance, _ files: AuthorityFiles) {
        switch provenance {
        case .found: break
        case .created: logger.notice("authority.created", metadata: ["certificate": "\(files.certificate)"])
        case .completed:
            logger.warning(
                "authority.created",
                metadata: [
                    "certificate": "\(files.certificate)",
                    "cause": """
                        \(files.key) was there without its certificate, as a first start that was cut short leaves it; \
                        a new certificate was issued for that key, and clients have to trust it
                        """,
                ])
        }
    }
}
