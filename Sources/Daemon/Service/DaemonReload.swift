import Glibc
import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// Applies a new configuration, whole or not at all.
extension ProxyDaemon {
    /// After a reload, until its memory is freed: most users of the old configuration have ended.
    private static let afterReloadNanoseconds: UInt64 = 10_000_000_000

    func reload() -> ReloadReport {
        guard !isStopping, let present = leaves else {
            return report(refused: "the proxy is stopping and can't reload")
        }
        notices.reloading()
        defer { notices.ready() }
        // Counts up to the reload are readable after it.
        upkeep?.save()
        do throws(ConfigurationProblems) {
            let fresh = try load()
            let configuration = try active(fresh) { try reloaded(present) }
            let addedToAdmin = try admin?.open(fresh.admin, namedIn: fresh.files.first ?? "")
            let added: [ListeningSocket]
            do throws(ConfigurationProblems) {
                added = try listening.openAdded(by: fresh)
            } catch {
                addedToAdmin?.close()
                throw error
            }
            warnOfRestart(fresh)
            output.apply(fresh.log)
            putIntoForce(configuration)
            if let addedToAdmin { admin?.replace(with: fresh.admin, addedToAdmin) }
            follow(fresh, adding: added)
            generation += 1
            readAt = WallClock.milliseconds() / 1000
            endFallback()
            keepConfiguration()
            let clients = fresh.limits.clients
            acceptor?.perform { $0.limit(clients: clients) }
            logger.notice(
                "config.reload",
                metadata: [
                    "files": "\(fresh.files.joined(separator: ", "))",
                    "listen": "\(listening.description)",
                ].merging(adminField) { $1 })
            warn(of: fresh)
            afterReload = Timer(loop: loop, owner: self, afterNanoseconds: Self.afterReloadNanoseconds) {
                $0.freeMemory.giveBack()
            }
            return report(refused: nil)
        } catch {
            for problem in error.problems { logger.error("config.error", metadata: ["cause": "\(problem)"]) }
            return report(refused: error.description)
        }
    }

    func putIntoForce(_ configuration: ActiveConfiguration) {
        snapshot = configuration.snapshot
        configurationInForce = configuration
        takeOver(configuration.leaves)
        users = configuration.users
        budget.limit = snapshot.limits.bodies
        followCache()
        upkeep?.replace(with: configuration)
        policy?.follow(snapshot)
        telemetry?.follow(snapshot)
        network?.follow(snapshot.reachability)
        slots?.reserve(for: snapshot.hosts.values)
        for worker in workers { worker.perform { $0.replace(with: configuration) } }
    }

    /// Applies replaced revocation lists alone. A broken one changes nothing.
    func reloadRevocationLists() {
        guard !isStopping, let leaves else { return }
        do {
            guard let fresh = try snapshot.withFreshRevocationLists() else { return }
            putIntoForce(try ActiveConfiguration(fresh, leaves: leaves, logger: logger))
            let files = Set(fresh.revocationLists.flatMap(\.lists.paths)).sorted()
            logger.notice("crl.reload", metadata: ["files": "\(files.joined(separator: ", "))"])
        } catch {
            logger.warning(
                "crl.failed", metadata: ["cause": "\(error)", "effect": "the previous lists stay in force"])
        }
    }

    func warn(of snapshot: Snapshot) {
        for warning in snapshot.warnings(at: WallClock.milliseconds() / 1000) {
            logger.warning("config.warning", metadata: ["cause": "\(warning)"])
        }
        for warning in PeerSight.current.warnings(about: snapshot) {
            logger.warning("config.warning", metadata: ["cause": "\(warning)"])
        }
        // A client takes two descriptors, or four with its socket pair behind the proxy's TLS. The process, each worker
        // and idle upstream connections take the others.
        let each = snapshot.proxy.tls == nil ? 2 : 4
        let own = 64 + 16 * (snapshot.proxy.workers ?? Processors.available)
        let (needed, have) = (snapshot.limits.clients * each + own, Descriptor.limit)
        guard needed > have else { return }
        let cause =
            "limits.clients is \(snapshot.limits.clients), which takes about \(needed) descriptors, and this process "
            + "may have \(have): raise LimitNOFILE in its unit (ulimit -n), or set limits.clients to at most "
            + "\(max(1, (have - own) / each))"
        logger.warning("config.warning", metadata: ["cause": "\(cause)"])
    }

    private func warnOfRestart(_ fresh: Snapshot) {
        var changed: [String] = []
        if fresh.proxy.workers != snapshot.proxy.workers { changed.append("proxy.workers") }
        if fresh.authority != snapshot.authority { changed.append("authority") }
        if listening.needsRestart(fresh.proxy.listen) { changed.append("proxy.listen (systemd)") }
        for key in changed {
            logger.warning(
                "config.warning", metadata: ["cause": "\(key) has changed, which takes effect at the next start"])
        }
    }

    private func follow(_ snapshot: Snapshot, adding added: [ListeningSocket]) {
        defer { listenersChanged() }
        guard !listening.needsRestart(snapshot.proxy.listen) else { return }
        let removed = listening.follow(snapshot, adding: added)
        let senders = snapshot.proxy.listen.senders
        acceptor?.perform { $0.replace(removed, with: added, senders: senders) }
    }

    /// For the guard against loops.
    func listenersChanged() { listeners.replace(with: listening.addresses + (admin?.addresses ?? [])) }
}

extension ProxyDaemon {
    /// Logs at the start that it is in force.
    func tellFallback() {
        guard let fallback else { return }
        for problem in fallback.refusal.problems { logger.error("config.error", metadata: ["cause": "\(problem)"]) }
        logger.error(
            "config.fallback",
            metadata: [
                "cause": "the configuration is refused",
                "effect": """
                the one that was last in force, of \(fallback.date), is used until the files are corrected and reloaded
                """,
            ])
    }

    /// For the next start. A fallback is kept already.
    func keepConfiguration() {
        guard let kept, fallback == nil else { return }
        _ = upkeep?.writer.now { [snapshot, readAt, logger, generation, keptGeneration] in
            do throws(KeptConfigurationProblem) {
                try kept.keep(snapshot, of: Self.version, at: readAt)
                keptGeneration.wrote(generation)
            } catch {
                logger.warning(
                    "state.unwritable",
                    metadata: [
                        "file": "\(kept.path)", "cause": "\(error)",
                        "effect": "a start with a configuration that is refused will fail",
                    ])
            }
        }
    }

    func endFallback() {
        guard fallback != nil else { return }
        fallback = nil
        logger.notice("config.fallback", metadata: ["effect": "over"])
    }
}

/// The local authorities, read at the start and at each reload, which follows a rotation.
extension ProxyDaemon {
    func loadAuthorities(at time: UnixTime) throws(AuthorityError) -> AuthoritySet {
        let files = snapshot.proxysAuthorityFiles
        authorityFiles = files
        let (authority, provenance) = try files.loadOrCreate(at: time)
        say(provenance, files)
        return warned(files.withRotation(authority, at: time))
    }

    /// The leaves by the present authority files: the same cache, if nothing has changed.
    func reloaded(_ leaves: LeafCache) throws(AuthorityError) -> LeafCache {
        guard let files = authorityFiles else { return leaves }
        let now = WallClock.milliseconds() / 1000
        let present = leaves.authorities
        do throws(AuthorityError) {
            // Needs no key, which may be readable only at the start.
            if try files.loadCertificates().first == present.current.certificate {
                let fresh = files.withRotation(present.current, at: now)
                return fresh.certificates == present.certificates ? leaves : leaves.replacing(warned(fresh))
            }
            return leaves.replacing(warned(files.withRotation(try files.load(at: now), at: now)))
        } catch .unreadable(let path, .system(ENOENT)) where path == files.certificate {
            logger.warning(
                "authority.failed",
                metadata: [
                    "cause": "\(path) is gone", "effect": "the loaded authority signs until the proxy stops",
                ])
            return leaves
        }
    }

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
                metadata: ["cause": "\(problem)", "effect": "the rotation can't go on; the current authority signs"])
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
                    \(files.key) existed without its certificate, as after an interrupted first start; \
                    a new certificate was issued for that key, and clients have to trust it
                    """,
                ])
        }
    }
}
